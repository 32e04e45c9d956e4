/**
 * New certificates for agents and routers over the connection they have: same name, same hosts, same
 * key or another of theirs, and as long as before. Nobody has to visit them for that.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import { BACKDATE_MS, readCertificate, signRequest } from "@heddle/common/pki";
import { logger } from "@heddle/common/log";
import { PEER } from "@heddle/common/rpc_server";
import { HeddleError } from "@heddle/proto/error";
import type { RenewalService } from "@heddle/proto/gen/identity";
import { type IssuingFiles, readIssuing } from "./issuing.ts";

const log = logger("control", "certificates");

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
      const authority = await readIssuing("renew", issuing);
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
