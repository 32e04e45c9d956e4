/** A throw-away authority in the state directory, and a certificate for every program. */
import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import type { Role } from "@heddle/common/identity";
import { createLeaf, createRoot, type KeyPairPem } from "@heddle/common/pki";

export const CLUSTER = "up";
const DAY_MS = 86_400_000;
const ROOT_VALID_MS = 3_650 * DAY_MS;
/** `up` makes new ones at every start, so this only bounds how long one may be left running. */
const LEAF_VALID_MS = 365 * DAY_MS;

/** Paths of a program's TLS files, as its configuration names them. */
export interface TlsPaths {
  readonly certificate_file: string;
  readonly key_file: string;
  readonly ca_file: string;
}

/** The authority of this state directory; made when there is none. */
export async function openAuthority(folder: string): Promise<KeyPairPem> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const [certificatePem, keyPem] = await Promise.all([
    readTextIfExists(join(folder, "ca.pem")),
    readTextIfExists(join(folder, "ca-key.pem")),
  ]);
  if (certificatePem !== undefined && keyPem !== undefined) return { certificatePem, keyPem };
  const root = await createRoot({ cluster: CLUSTER, validMs: ROOT_VALID_MS, now: Date.now() });
  await writeFileAtomic(join(folder, "ca-key.pem"), root.keyPem);
  await writeFileAtomic(join(folder, "ca.pem"), root.certificatePem);
  return root;
}

/** Writes a fresh certificate for `name` into `folder`/tls. */
export async function issueCertificate(
  authority: KeyPairPem,
  holder: { role: Role; name: string; folder: string },
): Promise<TlsPaths> {
  const leaf = await createLeaf(authority, {
    identity: { cluster: CLUSTER, role: holder.role, name: holder.name },
    hosts: ["127.0.0.1", "localhost"],
    validMs: LEAF_VALID_MS,
    now: Date.now(),
  });
  const tls = join(holder.folder, "tls");
  await Deno.mkdir(tls, { recursive: true, mode: 0o700 });
  const paths = {
    certificate_file: join(tls, "cert.pem"),
    key_file: join(tls, "key.pem"),
    ca_file: join(tls, "ca.pem"),
  };
  await writeFileAtomic(paths.key_file, leaf.keyPem);
  await writeFileAtomic(paths.certificate_file, leaf.certificatePem);
  await writeFileAtomic(paths.ca_file, authority.certificatePem);
  return paths;
}
