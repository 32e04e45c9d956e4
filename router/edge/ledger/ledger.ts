/**
 * Brings every record to control, once, without a request ever waiting for it. Records go to disk
 * ten times a second, whether control is there or not, and from there to control; a file goes when
 * control has all of it. So a process that is killed loses what it has not written for a tenth of a
 * second, and sends the rest again when it is back: control knows records by their ids.
 */
import type { UsageRecord as WireRecord } from "@heddle/proto/gen/tenancy";
import { errorText, HeddleError } from "@heddle/proto/error";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { type LedgerEntry, type LedgerFile, type LedgerFolder, linesOf } from "./ledger_file.ts";

const WRITE_MS = 100;
/** As many as control takes at once. */
const BATCH = 1_000;
/** While control is away, one file takes so much; reading one back must not fill the memory. */
const FILE_BYTES_MAX = 4 * 2 ** 20;
/** Files whose records are kept in memory too, so that they need not be read back. */
const WARM_FILES_MAX = 4;
/** Records that wait for a disk that hangs, or that cannot be written to. */
const MEMORY_RECORDS_MAX = 50_000;
/** Between two tries at a control that does not take records. */
const RETRY_MS = 1_000;
const COMPLAINT_MS = 60_000;

export interface LedgerOptions {
  readonly folder: LedgerFolder;
  readonly bytesMax: number;
  /** Resolves once control has the records on disk. */
  readonly send: (records: readonly WireRecord[]) => Promise<void>;
  readonly connected: () => boolean;
  /** Control has these now. */
  readonly onRecorded: (records: readonly WireRecord[]) => void;
  /** These were left by an earlier run, and control may not have them. */
  readonly onFound: (records: readonly WireRecord[]) => void;
}

interface Batch {
  /** Undefined: they could not be written, and are in memory only. */
  readonly file: LedgerFile | undefined;
  /** Undefined: they have to be read back. */
  entries: LedgerEntry[] | undefined;
}

export class Ledger {
  readonly #options: LedgerOptions;
  readonly #log = logger("router", "ledger");
  #pending: LedgerEntry[] = [];
  #open: Batch | undefined;
  #waiting: Batch[] = [];
  #sending: Promise<void> | undefined;
  #syncing: Promise<void> | undefined;
  #retryAt = 0;
  #lost = 0;
  #complainedAt = -Infinity;
  /** Files of another version: they count, and stay. */
  #foreignBytes = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Bytes on disk. */
  get bytes(): number {
    const open = this.#open?.file?.bytes ?? 0;
    return this.#waiting.reduce((sum, { file }) => sum + (file?.bytes ?? 0), 0) + open +
      this.#foreignBytes;
  }

  /** Records that are not on disk yet. */
  get unwritten(): number {
    return this.#pending.length;
  }

  /** Records that were dropped, for want of room. */
  get lost(): number {
    return this.#lost;
  }

  /** Takes a record of a request that has just ended. */
  add(record: WireRecord): void {
    if (this.#pending.length >= MEMORY_RECORDS_MAX) {
      return this.#lose(1, "the disk does not answer");
    }
    this.#pending.push({ record, endedAtMs: Date.now() });
  }

  /** Finds what an earlier run left. Before anything is added. */
  async load(): Promise<void> {
    const { folder, onFound } = this.#options;
    try {
      for (const file of await folder.list()) {
        const { entries, unreadable, foreign } = await folder.read(file);
        if (unreadable > 0) {
          this.#log.error("Usage records cannot be read", { file: file.path, unreadable });
        }
        if (foreign) {
          this.#foreignBytes += file.bytes;
          this.#log.error("Cannot read usage records of another version: the file stays", {
            file: file.path,
          });
          continue;
        }
        onFound(entries.map(({ record }) => record));
        this.#waiting.push({ file, entries: undefined });
      }
    } catch (error) {
      this.#log.error("Cannot read the usage records that were left", { why: errorText(error) });
    }
  }

  /** Writes and sends until `stop` aborts. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await delay(WRITE_MS, stop);
      await this.#write();
      this.#send();
    }
  }

  /** Writes what is left and waits for what is being sent. After `run` has ended. */
  async flush(): Promise<void> {
    await this.#write();
    this.#seal();
    this.#send();
    await this.#sending;
    await this.#syncing;
  }

  async #write(): Promise<void> {
    const entries = this.#pending;
    if (entries.length === 0) return;
    this.#pending = [];
    const lines = linesOf(entries);
    if (this.bytes + lines.length > this.#options.bytesMax) {
      return this.#keepInMemory(entries, "the spool is full");
    }
    this.#open ??= { file: this.#options.folder.create(), entries: [] };
    const { file } = this.#open;
    try {
      if (file !== undefined) await this.#options.folder.append(file, lines);
      this.#open.entries?.push(...entries);
    } catch (error) {
      // What has reached the file may be cut; both are sent, and count once.
      this.#seal();
      return this.#keepInMemory(entries, errorText(error));
    }
    if (file !== undefined) this.#sync(file);
    if ((file?.bytes ?? 0) >= FILE_BYTES_MAX) this.#seal();
  }

  /** Beside the writing: a slow disk must not let records wait in memory. */
  #sync(file: LedgerFile): void {
    this.#syncing ??= this.#options.folder.sync(file).catch((error: unknown) => {
      this.#complain("Cannot bring usage records to the disk for good", { why: errorText(error) });
    }).finally(() => this.#syncing = undefined);
  }

  /** Without a disk, control alone can take them, as long as it is there. */
  #keepInMemory(entries: LedgerEntry[], why: string): void {
    const held = this.#waiting.reduce(
      (sum, { file, entries }) => sum + (file === undefined ? entries?.length ?? 0 : 0),
      0,
    );
    if (!this.#options.connected() || held + entries.length > MEMORY_RECORDS_MAX) {
      return this.#lose(entries.length, why);
    }
    this.#complain("Usage records are in memory only: they are lost if this process ends", { why });
    this.#waiting.push({ file: undefined, entries });
  }

  #lose(count: number, why: string): void {
    this.#lost += count;
    this.#complain("Usage records are lost", { why, lostSoFar: this.#lost });
  }

  #complain(message: string, properties: Record<string, unknown>): void {
    const now = performance.now();
    if (now - this.#complainedAt < COMPLAINT_MS) return;
    this.#complainedAt = now;
    this.#log.error(message, properties);
  }

  #seal(): void {
    if (this.#open === undefined) return;
    if (this.#open.file !== undefined) this.#options.folder.close(this.#open.file);
    this.#waiting.push(this.#open);
    this.#open = undefined;
    const warm = this.#waiting.filter(({ file, entries }) =>
      file !== undefined && entries !== undefined
    );
    for (const batch of warm.slice(0, -WARM_FILES_MAX)) batch.entries = undefined;
  }

  #send(): void {
    if (this.#sending !== undefined || !this.#options.connected()) return;
    if (performance.now() < this.#retryAt) return;
    if (this.#open !== undefined) this.#seal();
    if (this.#waiting.length === 0) return;
    this.#sending = this.#sendAll().finally(() => this.#sending = undefined);
  }

  async #sendAll(): Promise<void> {
    try {
      for (let batch = this.#waiting[0]; batch !== undefined; batch = this.#waiting[0]) {
        await this.#sendBatch(batch);
        this.#waiting.shift();
        if (batch.file !== undefined) await this.#remove(batch.file);
      }
    } catch (error) {
      this.#retryAt = performance.now() + RETRY_MS;
      this.#complain("Cannot bring usage records to control: they wait", { why: errorText(error) });
    }
  }

  /** A file that stays is sent again by a later run, and counts once. */
  async #remove(file: LedgerFile): Promise<void> {
    try {
      await this.#options.folder.remove(file);
    } catch (error) {
      this.#complain("Cannot remove usage records that control has", { why: errorText(error) });
    }
  }

  async #sendBatch({ file, entries }: Batch): Promise<void> {
    const { folder, send, onRecorded } = this.#options;
    const all = entries ?? (file === undefined ? [] : (await folder.read(file)).entries);
    for (let at = 0; at < all.length; at += BATCH) {
      const now = Date.now();
      const records = all.slice(at, at + BATCH).map(({ record, endedAtMs }) => ({
        ...record,
        ageMs: BigInt(Math.max(0, now - endedAtMs)),
      }));
      try {
        await send(records);
      } catch (error) {
        if (!(error instanceof HeddleError) || error.code !== "invalid_input") throw error;
        // No later try would end otherwise, and all that follow would wait behind these.
        this.#lost += records.length;
        this.#log.error("Control refuses usage records: they are lost", { why: error.message });
      }
      onRecorded(records);
    }
  }
}
