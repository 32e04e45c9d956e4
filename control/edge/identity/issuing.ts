/** The authority with which control signs for agents, routers and attached engines. */
import { logger } from "@heddle/common/log";
import type { KeyPairPem } from "@heddle/common/pki";
import { errorText, HeddleError } from "@heddle/proto/error";

const log = logger("control", "certificates");

/** Where the key lies with which control signs. */
export interface IssuingFiles {
  readonly certificate_file: string;
  readonly key_file: string;
}

/**
 * Read for each, so that a new authority needs no restart. Throws `failed_precondition` when there is
 * none; `action` is what cannot be done then.
 */
export async function readIssuing(
  action: string,
  files: IssuingFiles | undefined,
): Promise<KeyPairPem> {
  if (files === undefined) {
    const instead = action === "renew" ? "; site.yml renews too" : "";
    throw new HeddleError(
      "failed_precondition",
      `Cannot ${action}: this control has no issuing section in control.yaml${instead}`,
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
    throw new HeddleError("failed_precondition", `Cannot ${action}: see control's log`, {
      cause: error,
    });
  }
}
