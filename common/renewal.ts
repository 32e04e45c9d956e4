/**
 * A program's certificate over time: when it ends, and how it is renewed before that, over the
 * connection that the program has with control. The key stays; only what is said about it is new.
 */
import { isDeepStrictEqual } from "node:util";
import { createClient, type Transport } from "@connectrpc/connect";
import { Gauge, type Registry } from "prom-client";
import { errorText, HeddleError } from "@heddle/proto/error";
import { RenewalService } from "@heddle/proto/gen/identity";
import { writeFileAtomic } from "./atomic_file.ts";
import { hash32 } from "./backoff.ts";
import { formatIdentity } from "./identity.ts";
import { logger } from "./log.ts";
import { readTlsFiles, type TlsFiles } from "./mtls_files.ts";
import {
  BACKDATE_MS,
  type CertificateFacts,
  createRequest,
  isIssuedFor,
  readCertificate,
} from "./pki.ts";
import { delay, spawnTask } from "./task.ts";

const log = logger("certificate");

/** Between two looks, at most and at least. Certificates hold for days; a look costs a millisecond. */
const LOOK_MS_MAX = 3_600_000;
const LOOK_MS_MIN = 5_000;
/** When it is due and cannot be had, it is asked for again after this part of what is left. */
const RETRY_AFTER = 1 / 10;
/** A renewal is due when so much of the life is over, and a little later for some than for others. */
const DUE_AFTER = 2 / 3;
const SPREAD = 1 / 20;

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** When the certificate should be renewed. Pure; jittered, so that no fleet comes at once. */
export function renewalDueAt({ serial, notBefore, notAfter }: CertificateFacts): number {
  const issuedAt = Math.min(notBefore + BACKDATE_MS, notAfter);
  const jitter = hash32(serial) / 0x1_0000_0000 * SPREAD;
  return issuedAt + (notAfter - issuedAt) * (DUE_AFTER + jitter);
}

/**
 * Renews the certificate over `transport` when that is due. True when it did. Throws HeddleErrors and
 * what the call throws; the files are then as they were.
 */
export async function renewIfDue(
  { files, transport, now }: {
    readonly files: TlsFiles;
    readonly transport: Transport;
    /** ms since 1970 */
    readonly now: number;
  },
): Promise<boolean> {
  const { cert, key } = await readTlsFiles(files);
  const current = readCertificate(cert);
  if (now < renewalDueAt(current)) return false;
  const requestPem = await createRequest(key);
  const { chainPem } = await createClient(RenewalService, transport)
    .renew({ requestPem }, { timeoutMs: 10_000 });
  await demandSame(current, chainPem, requestPem);
  try {
    await writeFileAtomic(files.certificate_file, chainPem, { mode: 0o644 });
  } catch (error) {
    const text = `Cannot write ${files.certificate_file}: ${
      errorText(error)
    }. site.yml renews it too`;
    throw new HeddleError("system", text, { cause: error });
  }
  const { serial, notAfter } = readCertificate(chainPem);
  log.info("Certificate renewed", { serial, until: new Date(notAfter).toISOString() });
  return true;
}

/** Renews whenever it is due, until `signal` aborts. Never rejects: what is wrong is logged. */
export async function keepRenewed(
  { files, transport }: { readonly files: TlsFiles; readonly transport: Transport },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = LOOK_MS_MAX;
    try {
      await renewIfDue({ files, transport, now: Date.now() });
    } catch (error) {
      if (signal.aborted) return;
      log.warning("Cannot renew the certificate", { reason: errorText(error) });
    }
    try {
      waitMs = untilNextLook(readCertificate((await readTlsFiles(files)).cert), Date.now());
    } catch {
      // Told above already.
    }
    await delay(Math.min(Math.max(waitMs, LOOK_MS_MIN), LOOK_MS_MAX), signal);
  }
}

/**
 * Calls `changed` when one of these files is another than before, until it is disposed of: what a
 * listener shows is in memory, and nobody may have told it of the files that were put in their place.
 * One that cannot be read counts as empty: `changed` reads it, and tells.
 */
export async function watchFiles(
  paths: readonly string[],
  changed: () => Promise<void>,
  everyMs: number = LOOK_MS_MAX,
): Promise<Disposable> {
  const look = () => Promise.all(paths.map((path) => Deno.readTextFile(path).catch(() => "")));
  let before = await look();
  const timer = setInterval(() => {
    spawnTask("certificate", async () => {
      const last = before;
      before = await look();
      if (!isDeepStrictEqual(last, before)) await changed();
    });
  }, everyMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function untilNextLook(facts: CertificateFacts, now: number): number {
  const due = renewalDueAt(facts);
  return now < due ? due - now : (facts.notAfter - now) * RETRY_AFTER;
}

/** Tells when the certificate in the file ends, and 0 for one that cannot be read. */
export function measureExpiry(registry: Registry, files: TlsFiles): void {
  new Gauge({
    name: "heddle_certificate_expiry_timestamp_seconds",
    help: "When this program's certificate ends, in seconds since 1970; 0: it cannot be read",
    registers: [registry],
    async collect() {
      const pem = await Deno.readTextFile(files.certificate_file).catch(() => "");
      this.set(endOf(pem) / 1_000);
    },
  });
}

function endOf(pem: string): number {
  try {
    return readCertificate(pem).notAfter;
  } catch {
    return 0;
  }
}

// Whatever control answers: what is written must be this program's, or it could not come back.
async function demandSame(
  current: CertificateFacts,
  chainPem: string,
  requestPem: string,
): Promise<void> {
  const [leaf, issuerPem] = chainPem.match(CERTIFICATE) ?? [];
  const good = leaf !== undefined && issuerPem !== undefined &&
    await isIssuedFor(leaf, { issuerPem, requestPem });
  const { identity } = readCertificate(leaf ?? "");
  const wanted = current.identity;
  if (
    good && identity !== undefined && wanted !== undefined &&
    formatIdentity(identity) === formatIdentity(wanted)
  ) return;
  throw new HeddleError("protocol", "Cannot use the renewed certificate: it is not ours");
}
