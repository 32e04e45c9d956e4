/**
 * From one root to the next while the fleet runs, in three steps with a run of Ansible after each:
 * every machine trusts both roots, then every certificate is of the new one, then only the new one is
 * trusted. What is to come lies in `next/`, what was in `old/`; each step can be repeated, also after
 * a crash in the middle of it.
 */
import { join } from "node:path";
import { readCertificate } from "@heddle/common/pki";
import { HeddleError } from "@heddle/proto/error";
import {
  type Authority,
  cannotWrite,
  createAuthority,
  findAuthority,
  type Issued,
  openAuthority,
  readIssued,
  writeAuthority,
  writeTrust,
} from "./authority.ts";

/** Where a rotation stands. */
export type RotationStep = "none" | "started" | "switched";

/** The root last: with it, the rest counts. */
const PARTS = [
  "issuing-key.pem",
  "issuing.pem",
  "fleet-key.pem",
  "fleet.pem",
  "root-key.pem",
  "root.pem",
] as const;

export async function rotationStep(folder: string): Promise<RotationStep> {
  if (await isThere(join(folder, "next/root.pem"))) return "started";
  return await isThere(join(folder, "old/root.pem")) ? "switched" : "none";
}

/** Makes the next authority, and has machines trust it beside the one in use. */
export async function startRotation(folder: string, now: number): Promise<void> {
  const { cluster, rootPem } = await openAuthority(folder);
  const next = join(folder, "next");
  if (await findAuthority(next) === undefined) {
    await writeAuthority(next, await createAuthority(cluster, now));
  }
  const made = await openAuthority(next);
  await writeTrust(folder, [rootPem, made.rootPem]);
}

/** From here on the next authority signs. Both stay trusted. */
export async function switchAuthority(folder: string): Promise<void> {
  const next = join(folder, "next");
  const old = join(folder, "old");
  try {
    if (!await isThere(join(old, "root.pem"))) {
      await Deno.mkdir(old, { recursive: true, mode: 0o700 });
      for (const part of PARTS) {
        if (await isThere(join(folder, part))) {
          await Deno.copyFile(join(folder, part), join(old, part));
        }
      }
    }
    for (const part of PARTS) {
      if (await isThere(join(next, part))) await Deno.rename(join(next, part), join(folder, part));
    }
    await Deno.remove(next, { recursive: true });
  } catch (error) {
    throw cannotWrite(folder, error);
  }
}

/**
 * Forgets the old authority. Throws `failed_precondition` while somebody's newest certificate is of
 * it and still good; `except` names holders, "agent/gpu-7", that have left the fleet.
 */
export async function finishRotation(
  folder: string,
  { now, except }: { readonly now: number; readonly except: ReadonlySet<string> },
): Promise<void> {
  const authority = await openAuthority(folder);
  const left = await leftOnOld(folder, authority, now);
  const waiting = left.filter(({ role, name }) => !except.has(`${role}/${name}`));
  if (waiting.length > 0) {
    const names = waiting.map(({ role, name }) => `${role}/${name}`).join(", ");
    throw new HeddleError(
      "failed_precondition",
      `Cannot finish: the newest certificate of ${names} is of the old authority and still good. ` +
        "Run site.yml, so that each is given a new one; --except names who has left the fleet",
    );
  }
  await writeTrust(folder, [authority.rootPem]);
  try {
    await Deno.remove(join(folder, "old"), { recursive: true });
  } catch (error) {
    throw cannotWrite(folder, error);
  }
}

/** Holders whose newest certificate is of the old authority and has not ended. */
async function leftOnOld(
  folder: string,
  { issuing }: Authority,
  now: number,
): Promise<readonly Issued[]> {
  const { serial } = readCertificate(issuing.certificatePem);
  const newest = new Map(
    (await readIssued(folder)).map((each) => [`${each.role}/${each.name}`, each]),
  );
  return [...newest.values()].filter(({ issuer, notAfter }) => issuer !== serial && notAfter > now);
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
