/**
 * Who holds a certificate. The URI in its subject alternative name says it:
 * `spiffe://heddle/<cluster>/<role>/<name>`. Nothing else in the certificate counts.
 */
import type { PeerCertificate } from "node:tls";

/**
 * A monitor may read metrics and nothing else. Who is attached speaks for engines of one deployment,
 * on the join port and nowhere else.
 */
export const ROLES = ["control", "router", "agent", "operator", "monitor", "attached"] as const;
export type Role = (typeof ROLES)[number];

export interface Identity {
  readonly cluster: string;
  readonly role: Role;
  readonly name: string;
}

/** What a peer's certificate says. Times are ms since 1970. */
export interface ShownCertificate {
  /** Undefined when it is of our authority and names nobody of ours. */
  readonly identity: Identity | undefined;
  /** Names and addresses under which it serves. */
  readonly hosts: readonly string[];
  /** Lower-case hex. */
  readonly serial: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

/** What the name of an authority begins with that can make nobody but these roles. */
export const FLEET_AUTHORITY = "Heddle fleet authority of ";
const FLEET_ROLES: readonly Role[] = ["agent", "router", "attached"];

/** Names that may stand in an identity: they go into URIs, file names and unit names. */
export const IDENTITY_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

export function formatIdentity(identity: Identity): string {
  return `spiffe://heddle/${identity.cluster}/${identity.role}/${identity.name}`;
}

/** Reads one URI; undefined when it is not exactly of our form. */
export function parseIdentity(uri: string): Identity | undefined {
  const match = /^spiffe:\/\/heddle\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(uri);
  if (match === null) return undefined;
  const [, cluster, role, name] = match;
  if (cluster === undefined || role === undefined || name === undefined) return undefined;
  if (!isRole(role) || !IDENTITY_NAME.test(cluster) || !IDENTITY_NAME.test(name)) return undefined;
  return { cluster, role, name };
}

/**
 * Finds the identity in a `subjectaltname` as node:tls prints it ("URI:…, DNS:…"). A certificate
 * with two URIs of our form says nothing: undefined.
 */
export function identityOfSubjectAltName(subjectAltName: string | undefined): Identity | undefined {
  if (subjectAltName === undefined) return undefined;
  // Quoted entries hold characters that could imitate a separator; ours never need quoting.
  if (subjectAltName.includes('"')) return undefined;
  const found = subjectAltName.split(", ")
    .filter((entry) => entry.startsWith("URI:"))
    .map((entry) => parseIdentity(entry.slice("URI:".length)))
    .filter((identity) => identity !== undefined);
  return found.length === 1 ? found[0] : undefined;
}

/**
 * Reads what node:tls says of a peer; undefined when it showed none. Of a connection that has just
 * ended it says null, whatever its types promise, and an empty object stands for no certificate.
 */
export function shownCertificate(
  certificate: Partial<PeerCertificate> | null | undefined,
): ShownCertificate | undefined {
  if (!isShown(certificate)) return undefined;
  return {
    identity: identityBy(certificate.issuer.CN, certificate.subjectaltname),
    hosts: hostsOf(certificate.subjectaltname ?? ""),
    serial: certificate.serialNumber.toLowerCase(),
    notBefore: Date.parse(certificate.valid_from),
    notAfter: Date.parse(certificate.valid_to),
  };
}

function isShown(
  certificate: Partial<PeerCertificate> | null | undefined,
): certificate is PeerCertificate {
  return certificate?.serialNumber !== undefined;
}

// Control signs as the fleet's authority. Whoever got hold of its key must not become an operator.
function identityBy(issuer: string | undefined, subjectAltName: string | undefined) {
  const identity = identityOfSubjectAltName(subjectAltName);
  if (identity === undefined || issuer?.startsWith(FLEET_AUTHORITY) !== true) return identity;
  return FLEET_ROLES.includes(identity.role) ? identity : undefined;
}

function hostsOf(subjectAltName: string): readonly string[] {
  return subjectAltName.split(", ").flatMap((entry) => {
    const host = /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1];
    return host === undefined ? [] : [host];
  });
}

function isRole(word: string): word is Role {
  return ROLES.some((role) => role === word);
}
