/**
 * `ctl ca sign`: turns a request into a certificate. Who the holder is comes from the flags, never
 * from the request. Given the certificate in use as well, it prints that one again as long as it is
 * good, so that running it twice changes nothing.
 */
import { buildCommand } from "@stricli/core";
import { isIssuedFor, type LeafOptions, readCertificate, signRequest } from "@heddle/common/pki";
import { formatIdentity } from "@heddle/common/identity";
import { HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";
import { type Authority, openAuthority } from "./authority.ts";
import { finishLeaf, LEAF_FLAGS, type LeafFlags, leafOptions, parseTime } from "./leaf_flags.ts";

const REQUEST = /-----BEGIN CERTIFICATE REQUEST-----[\s\S]+?-----END CERTIFICATE REQUEST-----/g;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

interface SignFlags extends LeafFlags {
  /** ms */
  readonly renewBefore: number;
}

export const sign = buildCommand({
  docs: {
    brief: "Sign the request on standard input and print the certificate with its chain",
    fullDescription: "Standard input holds the request, as `ca request` prints it, and may hold " +
      "the certificate in use after it: while that is good it is printed again.",
  },
  parameters: {
    flags: {
      ...LEAF_FLAGS,
      renewBefore: {
        kind: "parsed",
        parse: parseTime,
        default: "30d",
        placeholder: "time",
        brief: "A certificate in use that holds for less than this is replaced",
      },
    },
  },
  async func(this: CtlContext, flags: SignFlags) {
    const authority = await openAuthority(this.folders.authority);
    const input = await this.readStdin();
    const [requestPem, more] = input.match(REQUEST) ?? [];
    if (requestPem === undefined || more !== undefined) {
      throw new HeddleError(
        "invalid_input",
        'Cannot sign: want one request on standard input, as "heddle ca request" prints it',
      );
    }
    const leaf = leafOptions(authority, flags, Date.now());
    const chain = input.match(CERTIFICATE) ?? [];
    const current = { requestPem, chain, renewBeforeMs: flags.renewBefore };
    if (await isGood(authority, leaf, current)) {
      this.io.out(chain.map((pem) => `${pem}\n`).join(""));
      return;
    }
    const certificatePem = await signRequest(authority.issuing, requestPem, leaf);
    this.io.out(await finishLeaf(this.folders.authority, authority, certificatePem));
  },
});

/** True when the certificate in use says what is asked, for this key, and holds long enough. */
async function isGood(
  authority: Authority,
  wanted: LeafOptions,
  current: { requestPem: string; chain: readonly string[]; renewBeforeMs: number },
): Promise<boolean> {
  const [pem, issuer, ...more] = current.chain;
  // What control has renewed is as good as what was signed here.
  const issuerPem = [authority.issuing, authority.fleet]
    .map((pair) => pair?.certificatePem)
    .find((each) => each?.trim() === issuer?.trim());
  if (pem === undefined || issuerPem === undefined || more.length > 0) return false;
  try {
    const { identity, hosts, notAfter } = readCertificate(pem);
    return identity !== undefined &&
      formatIdentity(identity) === formatIdentity(wanted.identity) &&
      sameHosts(hosts, wanted.hosts) &&
      notAfter - wanted.now > current.renewBeforeMs &&
      await isIssuedFor(pem, { issuerPem, requestPem: current.requestPem });
  } catch (error) {
    // What cannot be read is not worth keeping.
    if (error instanceof HeddleError) return false;
    throw error;
  }
}

function sameHosts(found: readonly string[], wanted: readonly string[]): boolean {
  return found.length === wanted.length && wanted.every((host) => found.includes(host));
}
