/**
 * Whether a request comes from the console itself. A browser sends requests for any page that it has
 * open: one from another origin must not decide anything here, and a name that somebody pointed at
 * this address must not make a page of theirs ours.
 */
import { X509Certificate } from "node:crypto";

/** What a request says of where it comes from. */
export interface Provenance {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
}

/** What every answer of the console says: nothing but its own files, framed by nobody. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** Why the request is refused, in words; undefined when it is not. */
export function refusalOf(
  request: Provenance,
  { scheme, hosts }: { readonly scheme: "http" | "https"; readonly hosts: readonly string[] },
): string | undefined {
  const { method, host, origin, fetchSite } = request;
  const name = hostName(host ?? "");
  if (!hosts.includes(name)) {
    return `this console is not "${name}"; it is reached as ${hosts.join(", ")}`;
  }
  if (origin !== undefined && origin !== `${scheme}://${host}`) {
    return `the request comes from ${origin}`;
  }
  const asks = method === "GET" || method === "HEAD";
  if (!asks && origin === undefined) return "the request does not say where it comes from";
  if (fetchSite !== undefined && fetchSite !== "same-origin" && fetchSite !== "none" && !asks) {
    return "the request comes from another site";
  }
  return undefined;
}

/** Names and addresses that a certificate is for, in lower case; without a port. */
export function hostsOf(certificatePem: string): readonly string[] {
  const names = new X509Certificate(certificatePem).subjectAltName ?? "";
  return names.split(", ").flatMap((name) => {
    const host = /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1];
    return host === undefined ? [] : [host.toLowerCase()];
  });
}

function hostName(host: string): string {
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d+)?$/i.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d+$/, "")).toLowerCase();
}
