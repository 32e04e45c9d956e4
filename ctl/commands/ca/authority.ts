/**
 * The folder of a cluster's certificate authority: a root that can be put away once it has signed,
 * the issuing authority that signs every day, and a line for every certificate it gave out.
 *
 *     root.pem  root-key.pem  issuing.pem  issuing-key.pem  fleet.pem  fleet-key.pem
 *     trust.pem     what machines are to trust: the root, and during a rotation both roots
 *     issued.jsonl
 */
import { join } from "node:path";
import { z } from "zod";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { ROLES } from "@heddle/common/identity";
import { createIssuing, createRoot, type KeyPairPem, readCertificate } from "@heddle/common/pki";
import { errorText, HeddleError } from "@heddle/proto/error";

export const DAY_MS = 86_400_000;

/** The root is what every machine trusts; replacing it visits all of them. */
const ROOT_VALID_MS = 3_650 * DAY_MS;
/** Renewing what is below the root needs the root's key, so not often. */
const ISSUING_VALID_MS = 730 * DAY_MS;

/** What signing needs. The root's key is not among it. */
export interface Authority {
  readonly cluster: string;
  readonly rootPem: string;
  readonly issuing: KeyPairPem;
  /** What control renews with; undefined in a folder that an earlier version made. */
  readonly fleet: KeyPairPem | undefined;
  /** What machines are to trust. */
  readonly trustPem: string;
}

/** A certificate that was given out. Times are ms since 1970. */
const issuedSchema = z.object({
  serial: z.string(),
  role: z.enum(ROLES),
  name: z.string(),
  notAfter: z.number(),
  /** Serial of the authority that signed. */
  issuer: z.string(),
});
export type Issued = z.output<typeof issuedSchema>;

/** Opens the authority in `folder`. Throws `not_found` when there is none. */
export async function openAuthority(folder: string): Promise<Authority> {
  const authority = await findAuthority(folder);
  if (authority !== undefined) return authority;
  throw new HeddleError(
    "not_found",
    `No authority in ${folder}: make one with "heddle ca init --cluster NAME", or name its ` +
      "folder in HEDDLE_CA",
  );
}

/** The authority in `folder`, or undefined. Throws when there is part of one. */
export async function findAuthority(folder: string): Promise<Authority | undefined> {
  const [rootPem, certificatePem, keyPem] = await Promise.all([
    readFile(join(folder, "root.pem")),
    readFile(join(folder, "issuing.pem")),
    readFile(join(folder, "issuing-key.pem")),
  ]);
  if (rootPem === undefined && certificatePem === undefined && keyPem === undefined) {
    return undefined;
  }
  if (rootPem === undefined || certificatePem === undefined || keyPem === undefined) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot use the authority in ${folder}: root.pem, issuing.pem and issuing-key.pem are not ` +
        "all there; put back what is missing from your copy",
    );
  }
  const { cluster } = readCertificate(rootPem);
  if (cluster === undefined) {
    throw new HeddleError("invalid_input", `Cannot use ${folder}/root.pem: it names no cluster`);
  }
  return {
    cluster,
    rootPem,
    issuing: { certificatePem, keyPem },
    fleet: await readPair(folder, "fleet"),
    trustPem: await readFile(join(folder, "trust.pem")) ?? rootPem,
  };
}

async function readPair(folder: string, name: string): Promise<KeyPairPem | undefined> {
  const [certificatePem, keyPem] = await Promise.all([
    readFile(join(folder, `${name}.pem`)),
    readFile(join(folder, `${name}-key.pem`)),
  ]);
  return certificatePem === undefined || keyPem === undefined
    ? undefined
    : { certificatePem, keyPem };
}

/** What a new authority consists of. */
export interface NewAuthority {
  readonly root: KeyPairPem;
  readonly issuing: KeyPairPem;
  readonly fleet: KeyPairPem;
}

/** Makes a root, and below it what signs every day and what control signs with. */
export async function createAuthority(cluster: string, now: number): Promise<NewAuthority> {
  const root = await createRoot({ cluster, validMs: ROOT_VALID_MS, now });
  const below = { cluster, validMs: ISSUING_VALID_MS, now };
  return {
    root,
    issuing: await createIssuing(root, below),
    fleet: await createIssuing(root, { ...below, fleet: true }),
  };
}

/** Writes a new authority; keys are readable by their owner alone. */
export async function writeAuthority(folder: string, made: NewAuthority): Promise<void> {
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of ["issuing", "fleet"] as const) {
      await writeFileAtomic(join(folder, `${name}-key.pem`), made[name].keyPem);
      await writeCertificate(join(folder, `${name}.pem`), made[name].certificatePem);
    }
    await writeFileAtomic(join(folder, "root-key.pem"), made.root.keyPem);
    // Last: a folder without it counts as incomplete, never as an authority.
    await writeCertificate(join(folder, "root.pem"), made.root.certificatePem);
  } catch (error) {
    throw cannotWrite(folder, error);
  }
}

/** Says what machines are to trust. */
export async function writeTrust(folder: string, roots: readonly string[]): Promise<void> {
  const text = roots.map((pem) => `${pem.trim()}\n`).join("");
  try {
    await writeCertificate(join(folder, "trust.pem"), text);
  } catch (error) {
    throw cannotWrite(folder, error);
  }
}

function writeCertificate(file: string, pem: string): Promise<void> {
  return writeFileAtomic(file, pem, { mode: 0o644 });
}

/** The error of whoever cannot write into a folder. */
export function cannotWrite(folder: string, error: unknown): HeddleError {
  return new HeddleError("system", `Cannot write to ${folder}: ${errorText(error)}`, {
    cause: error,
  });
}

/** True while the root's key still lies beside the authority. */
export async function hasRootKey(folder: string): Promise<boolean> {
  return await readFile(join(folder, "root-key.pem")) !== undefined;
}

/** Notes a certificate that was given out. Several signers may do so at once: one write, appended. */
export async function recordIssued(folder: string, issued: Issued): Promise<void> {
  const file = join(folder, "issued.jsonl");
  try {
    await Deno.writeTextFile(file, `${JSON.stringify(issued)}\n`, { append: true, mode: 0o600 });
  } catch (error) {
    throw new HeddleError("system", `Cannot write ${file}: ${errorText(error)}`, { cause: error });
  }
}

/** Everything given out so far, the oldest first. */
export async function readIssued(folder: string): Promise<readonly Issued[]> {
  const file = join(folder, "issued.jsonl");
  const lines = (await readFile(file) ?? "").split("\n");
  return lines.flatMap((line, index) => {
    if (line.trim() === "") return [];
    const parsed = issuedSchema.safeParse(parseJson(line));
    if (parsed.success) return [parsed.data];
    throw new HeddleError("invalid_input", `Cannot read ${file}, line ${index + 1}`);
  });
}

async function readFile(file: string): Promise<string | undefined> {
  try {
    return await readTextIfExists(file);
  } catch (error) {
    throw new HeddleError("system", `Cannot read ${file}: ${errorText(error)}`, { cause: error });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
