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

export function findCredential(headers: RequestHeaders): Credential {
  const found = new Set<string>();
  const bearer = BEARER.exec(single(headers["authorization"]) ?? "")?.[1];
  for (const key of [bearer, single(headers["api-key"]), single(headers["x-api-key"])]) {
    if (key !== undefined && key.trim() !== "") found.add(key.trim());
  }
  const [key, other] = [...found];
  if (key === undefined) return { kind: "none" };
  return other === undefined ? { kind: "key", key } : { kind: "conflict" };
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.join(", ");
}
