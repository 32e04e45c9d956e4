/** Is the operator's certificate one that control can accept? */
import { createPrivateKey, X509Certificate } from "node:crypto";
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
export function checkCertificate(material: TlsMaterial, now: number): Check {
  const { identity, notBefore, notAfter } = readCertificate(material.cert);
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
  const mixed = mixedUp(material, identity.cluster);
  if (mixed !== undefined) return failed(NAME, `${who}: ${mixed.detail}`, mixed.next);
  const left = `${who}, ${formatDurationMs(notAfter - now)} left`;
  if (!isOfAuthority(material)) {
    return warning(
      NAME,
      `${left}, and of no authority in ca_file, though of the same cluster's name: was the cluster ` +
        "set up anew since?",
      "take certificate_file, key_file and ca_file that were made together",
    );
  }
  return notAfter - now < SOON_MS ? warning(NAME, left, RENEW) : ok(NAME, left);
}

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Three files that are not of one another, each good by itself: TLS itself only says "refused". */
function mixedUp(
  { cert, key, ca }: TlsMaterial,
  cluster: string,
): { readonly detail: string; readonly next: string } | undefined {
  if (!isKeyOf(key, cert)) {
    return {
      detail: "the private key in key_file is not its own",
      next: "take cert.pem and key.pem from the same folder",
    };
  }
  const trusted = (ca.match(PEM) ?? []).map((each) => readCertificate(each).cluster);
  if (trusted.length === 0 || trusted.some((each) => each === undefined || each === cluster)) {
    return undefined;
  }
  return {
    detail: `it is of cluster ${cluster}, and ca_file is of cluster ${
      [...new Set(trusted)].join(", ")
    }`,
    next: "take certificate_file, key_file and ca_file of one cluster",
  };
}

/** Longest way from a certificate to what signed it; authorities here have two steps. */
const CHAIN_MAX = 5;

/** Whether it leads, over what lies beside it, to one in ca_file. What is no certificate says nothing. */
function isOfAuthority({ cert, ca }: TlsMaterial): boolean {
  try {
    const read = (text: string) => (text.match(PEM) ?? []).map((each) => new X509Certificate(each));
    const [trusted, [leaf, ...beside]] = [read(ca), read(cert)];
    const signerOf = (one: X509Certificate, among: readonly X509Certificate[]) =>
      among.find((each) => one.issuer === each.subject && one.verify(each.publicKey));
    let at = leaf;
    for (let steps = 0; at !== undefined && steps < CHAIN_MAX; steps++) {
      if (signerOf(at, trusted) !== undefined) return true;
      at = signerOf(at, beside);
    }
    return false;
  } catch {
    return true;
  }
}

function isKeyOf(key: string, cert: string): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}
