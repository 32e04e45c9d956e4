/**
 * The last routing table on disk, so that a router that starts while control is away serves what
 * it served before. It holds the replicas' keys, so nobody else may read it.
 */
import { join } from "node:path";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { errorText } from "@heddle/proto/error";
import { WatchResponseSchema } from "@heddle/proto/gen/router";
import { z } from "zod";
import type { Table, TableUpdate } from "../../core/fleet/table.ts";
import { decodeWatch, encodeTable } from "./watch_message.ts";

const VERSION = 1;
/** Updates come in bursts; one write for each of them would only wear the disk. */
const DEBOUNCE_MS = 1_000;
/** A full disk does not empty itself within a second, and may within a minute. */
const RETRY_MS = 30_000;

const fileSchema = z.object({
  version: z.number(),
  /** When control last confirmed it, in ms since 1970 by this machine's clock. */
  confirmed_at_ms: z.number(),
  watch: z.json(),
});

export interface SavedSnapshot {
  readonly update: TableUpdate;
  readonly confirmedAtMs: number;
}

export class SnapshotFile {
  readonly #path: string;
  readonly #retryMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();
  #pending: (() => SnapshotContent) | undefined;
  #closed = false;

  constructor(directory: string, retryMs: number = RETRY_MS) {
    this.#path = join(directory, "snapshot.json");
    this.#retryMs = retryMs;
  }

  /** What was saved last; undefined when there is nothing, or nothing of use, and then says why. */
  async load(): Promise<SavedSnapshot | undefined> {
    try {
      const text = await readTextIfExists(this.#path);
      if (text === undefined) return undefined;
      const file = fileSchema.parse(JSON.parse(text));
      if (file.version !== VERSION) {
        // Not broken, only newer; it stays until control's next word replaces it.
        throw new Error(`it has version ${file.version}, and this router reads ${VERSION}`);
      }
      const message = fromJson(WatchResponseSchema, file.watch, { ignoreUnknownFields: true });
      return { update: decodeWatch(message).update, confirmedAtMs: file.confirmed_at_ms };
    } catch (error) {
      logger("router", "snapshot").warning("Cannot use the last snapshot: waiting for control", {
        file: this.#path,
        why: errorText(error),
      });
      return undefined;
    }
  }

  /** Writes soon; of several calls the last one counts. */
  save(content: () => SnapshotContent): void {
    this.#pending = content;
    this.#timer ??= setTimeout(() => this.#write(), DEBOUNCE_MS);
  }

  /** Writes at once what is still to be written, and waits for it. Nothing is written afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#write();
    await this.#writing;
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const content = this.#pending;
    this.#pending = undefined;
    if (content === undefined) return;
    // One after the other, or an older table could be renamed over a newer one.
    this.#writing = this.#writing.then(() => this.#put(content));
  }

  async #put(content: () => SnapshotContent): Promise<void> {
    try {
      const { table, confirmedAtMs } = content();
      const watch = toJson(WatchResponseSchema, encodeTable(table));
      const file = { version: VERSION, confirmed_at_ms: confirmedAtMs, watch };
      await writeFileAtomic(this.#path, `${JSON.stringify(file)}\n`, { mode: 0o600 });
    } catch (error) {
      // Serving does not need it; the next restart without control would.
      logger("router", "snapshot").error("Cannot save the snapshot", {
        file: this.#path,
        why: errorText(error),
        retryMs: this.#closed ? undefined : this.#retryMs,
      });
      if (this.#closed) return;
      this.#pending ??= content;
      this.#timer ??= setTimeout(() => this.#write(), this.#retryMs);
    }
  }
}

export interface SnapshotContent {
  readonly table: Table;
  readonly confirmedAtMs: number;
}
