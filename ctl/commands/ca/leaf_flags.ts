/** What a certificate is to say, as flags of the commands that sign. */
import { type Identity, IDENTITY_NAME, type Role, ROLES } from "@heddle/common/identity";
import { parseDurationMs } from "@heddle/common/duration";
import { type LeafOptions, readCertificate } from "@heddle/common/pki";
import { HeddleError } from "@heddle/proto/error";
import { type Authority, recordIssued } from "./authority.ts";

/** A host name; "_" too, which DNS has no use for and machines are named with all the same. */
const LABEL = /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/;
const HOST_LENGTH_MAX = 253;

export interface LeafFlags {
  readonly role: Role;
  readonly name: string;
  readonly host?: readonly string[];
  /** ms */
  readonly valid: number;
}

export const LEAF_FLAGS = {
  role: { kind: "enum", values: ROLES, brief: "What the holder is" },
  name: {
    kind: "parsed",
    parse: parseName,
    placeholder: "name",
    brief: "Who the holder is: a node's name, a router's, a person's",
  },
  host: {
    kind: "parsed",
    parse: parseHost,
    variadic: true,
    optional: true,
    placeholder: "host",
    brief: "Name or address under which it serves; may stand several times",
  },
  valid: {
    kind: "parsed",
    parse: parseTime,
    default: "90d",
    placeholder: "time",
    brief: "How long the certificate holds, at most as long as its authority",
  },
} as const;

/** The leaf that the flags ask `authority` for. */
export function leafOptions(authority: Authority, flags: LeafFlags, now: number): LeafOptions {
  const identity: Identity = { cluster: authority.cluster, role: flags.role, name: flags.name };
  const { notAfter } = readCertificate(authority.issuing.certificatePem);
  if (notAfter <= now) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot sign: the issuing authority of ${authority.cluster} expired on ` +
        new Date(notAfter).toISOString().slice(0, 10),
    );
  }
  return { identity, hosts: [...new Set(flags.host ?? [])], validMs: flags.valid, now };
}

/** Notes a signed certificate and returns the chain that its holder shows: it and its issuer. */
export async function finishLeaf(
  folder: string,
  authority: Authority,
  certificatePem: string,
): Promise<string> {
  const { serial, identity, notAfter } = readCertificate(certificatePem);
  if (identity === undefined) throw new Error("invariant: a leaf names its holder");
  const { role, name } = identity;
  const issuer = readCertificate(authority.issuing.certificatePem).serial;
  await recordIssued(folder, { serial, role, name, notAfter, issuer });
  return chainOf(certificatePem, authority.issuing.certificatePem);
}

function chainOf(...pems: readonly string[]): string {
  return pems.map((pem) => `${pem.trim()}\n`).join("");
}

export function parseTime(text: string): number {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms === 0) throw new SyntaxError(`want a time such as "90d": "${text}"`);
  return ms;
}

function parseName(text: string): string {
  if (IDENTITY_NAME.test(text)) return text;
  throw new SyntaxError(`want letters, digits, ".", "_" and "-", as in "gpu-7": "${text}"`);
}

// One spelling for each IPv6 address, so that the certificate of today equals that of tomorrow.
function parseHost(text: string): string {
  if (text.includes(":") && URL.canParse(`http://[${text}]`)) {
    return new URL(`http://[${text}]`).hostname.slice(1, -1);
  }
  if (text.length <= HOST_LENGTH_MAX && text.split(".").every((part) => LABEL.test(part))) {
    return text.toLowerCase();
  }
  throw new SyntaxError(`want a host name or an address: "${text}"`);
}
