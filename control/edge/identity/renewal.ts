/**
 * New certificates for agents and routers over the connection they have: same name, same hosts, same
 * key or another of theirs, and as long as before. Nobody has to visit them for that.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import { BACKDATE_MS, type KeyPairPem, readCertificate, signRequest } from "@heddle/common/pki";
import { logger } from "@heddle/common/log";
import { PEER } from "@heddle/common/rpc_server";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { RenewalService } from "@heddle/proto/gen/identity";

const log = logger("control", "certificates");

/** Where the key lies with which control signs. */
export interface IssuingFiles {
  readonly certificate_file: string;
  readonly key_file: string;
}

export interface RenewalRpcOptions {
  readonly cluster: string;
  /** Undefined: this control signs nothing. */
  readonly issuing: IssuingFiles | undefined;
  /** ms since 1970 */
  readonly now: () => number;
}

/** The handlers of RenewalService. */
export function renewalRpc(options: RenewalRpcOptions): ServiceImpl<typeof RenewalService> {
  const { cluster, issuing, now } = options;
  return {
    async renew({ requestPem }, context) {
      const { certificate } = context.values.get(PEER);
      const identity = certificate?.identity;
      const isFleet = identity?.role === "agent" || identity?.role === "router";
      if (certificate === undefined || identity?.cluster !== cluster || !isFleet) {
        throw new HeddleError(
          "permission_denied",
          `Cannot renew: want the certificate of an agent or a router of cluster "${cluster}"`,
        );
      }
      const { hosts, notBefore, notAfter } = certificate;
      const authority = await readIssuing(issuing);
      const validMs = notAfter - notBefore - BACKDATE_MS;
      const leaf = await signRequest(authority, requestPem, {
        identity,
        hosts,
        validMs,
        now: now(),
      });
      const made = readCertificate(leaf);
      log.info("Certificate renewed", {
        role: identity.role,
        name: identity.name,
        serial: made.serial,
        until: new Date(made.notAfter).toISOString(),
      });
      return { chainPem: `${leaf.trim()}\n${authority.certificatePem.trim()}\n` };
    },
  };
}

// Read for each, so that a new authority needs no restart.
async function readIssuing(files: IssuingFiles | undefined): Promise<KeyPairPem> {
  if (files === undefined) {
    throw new HeddleError(
      "failed_precondition",
      "Cannot renew: this control has no issuing section in control.yaml; site.yml renews too",
    );
  }
  try {
    const [certificatePem, keyPem] = await Promise.all([
      Deno.readTextFile(files.certificate_file),
      Deno.readTextFile(files.key_file),
    ]);
    return { certificatePem, keyPem };
  } catch (error) {
    log.error("Cannot read the issuing authority", { reason: errorText(error) });
    throw new HeddleError("failed_precondition", "Cannot renew: see control's log", {
      cause: error,
    });
  }
}
