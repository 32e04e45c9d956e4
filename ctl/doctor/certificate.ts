/** Is the operator's certificate one that control can accept? */
import { formatDurationMs } from "@heddle/common/duration";
import { formatIdentity } from "@heddle/common/identity";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { readCertificate } from "@heddle/common/pki";
import { type Check, failed, ok, warning } from "./check.ts";

const NAME = "certificate";
const RENEW = "ask whoever holds the authority: heddle ca sign --role operator";
/** An operator notices in time, and is not bothered for months. */
const SOON_MS = 14 * 24 * 3_600_000;

/** `now` is in ms since 1970. */
export function checkCertificate({ cert }: TlsMaterial, now: number): Check {
  const { identity, notBefore, notAfter } = readCertificate(cert);
  if (identity === undefined) return failed(NAME, "says nobody's name in a cluster", RENEW);
  const who = formatIdentity(identity);
  if (identity.role !== "operator") {
    return failed(NAME, `${who} is not an operator's`, RENEW);
  }
  if (now < notBefore) {
    const ms = formatDurationMs(notBefore - now);
    return failed(
      NAME,
      `${who} holds from in ${ms} on`,
      "compare this machine's clock with control's",
    );
  }
  if (now >= notAfter) {
    return failed(NAME, `${who} ended ${formatDurationMs(now - notAfter)} ago`, RENEW);
  }
  const left = `${who}, ${formatDurationMs(notAfter - now)} left`;
  return notAfter - now < SOON_MS ? warning(NAME, left, RENEW) : ok(NAME, left);
}
