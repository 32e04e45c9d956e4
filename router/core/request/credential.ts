/**
 * Finds the key in a request's headers. Every way in which clients send one ends here, so that no
 * spelling meets another check than the others.
 */

/** Lower-cased header names to values, as node:http gives them. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export type Credential =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "none" }
  /** Two that differ. */
  | { readonly kind: "conflict" };

const BEARER = /^bearer +(\S+)\s*$/i;

/** A header that stands more than once has several values; each is looked at. */
export function findCredential(headers: RequestHeaders): Credential {
  const found = new Set<string>();
  for (const value of valuesOf(headers["authorization"])) {
    const bearer = BEARER.exec(value)?.[1];
    if (bearer !== undefined) found.add(bearer);
  }
  for (const name of ["api-key", "x-api-key"]) {
    for (const value of valuesOf(headers[name])) {
      if (value.trim() !== "") found.add(value.trim());
    }
  }
  const [key, other] = [...found];
  if (key === undefined) return { kind: "none" };
  return other === undefined ? { kind: "key", key } : { kind: "conflict" };
}

function valuesOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
