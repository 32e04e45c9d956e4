/**
 * Brings the files of a source into a folder, in ranges over several connections, and goes on where
 * an earlier run was ended. A file counts only once all of it was read back and found to be what was
 * promised; what was written is noted as it is written, so that a crash costs less than one range.
 */
import type { FetchRequest } from "../../../core/weights/documents.ts";
import { WeightsError } from "../../../core/weights/failure.ts";
import { type Interval, missing } from "../../../core/weights/intervals.ts";
import { errorText } from "@heddle/proto/error";
import { openAside } from "./aside.ts";
import { type Disk, watchDisk } from "./disk.ts";
import { FileTransfer } from "./file_transfer.ts";
import type { Http } from "../net/http.ts";
import { Pace, type PaceClock } from "./pace.ts";
import { PartFile } from "./part_file.ts";
import type { Patience } from "../net/patience.ts";
import type { Progress } from "../progress.ts";
import type { RemoteFile } from "../remote/remote_file.ts";

/** What was checked, for the manifest. */
export interface Fetched {
  readonly path: string;
  readonly size: number;
  readonly hash: string;
}

export interface DownloadOptions {
  readonly request: FetchRequest;
  readonly folder: string;
  readonly http: Http;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** @default the real one */
  readonly disk?: Disk;
  /** Of the limit on bandwidth. @default the real one */
  readonly clock?: PaceClock;
}

/** A file that was spoilt on its way is fetched once more; twice is no accident. */
const CORRUPT_TRIES = 2;

/** Resolves when every file is there and checked. Throws WeightsError, or the signal's reason. */
export async function download(
  files: readonly RemoteFile[],
  options: DownloadOptions,
): Promise<readonly Fetched[]> {
  const { request, folder, progress } = options;
  const failed = new AbortController();
  const signal = AbortSignal.any([options.signal, failed.signal]);
  const parts = files.map((file) => new PartFile(folder, file));
  try {
    await openAside(folder, files.map(({ path }) => path));
    const open: PartFile[] = [];
    for (const part of parts) {
      const whole = await part.open();
      progress.found(part.hadBytes);
      if (whole) progress.fileDone();
      else open.push(part);
    }
    await watchDisk(folder, () => lackingBytes(open), {
      request,
      signal,
      onShort: failed,
      ...(options.disk === undefined ? {} : { disk: options.disk }),
    });
    const downloading = new Download(options, signal);
    await Promise.all(
      Array.from(
        { length: request.connections },
        () =>
          downloading.work(open).catch((error: unknown) => {
            // The first one says why; the others end for it.
            failed.abort(error);
            throw error;
          }),
      ),
    );
    return parts.map(({ file, size }) => ({
      path: file.path,
      size: size ?? 0,
      hash: file.hash === undefined ? "" : `${file.hash.algorithm}:${file.hash.hex}`,
    }));
  } catch (error) {
    options.signal.throwIfAborted();
    throw onDisk(failed.signal.aborted ? failed.signal.reason : error);
  } finally {
    failed.abort();
    for (const part of parts) part.close();
  }
}

const WHOLE: Interval = { start: 0, end: Infinity };

/** One file's ranges, handed out to whoever is free. */
interface Open {
  readonly part: PartFile;
  readonly transfer: FileTransfer;
  readonly todo: Interval[];
  /** Ranges that somebody works on. */
  busy: number;
  corrupt: number;
  /** It comes in one piece, or not at all. */
  whole: boolean;
  state: "ranges" | "checking" | "done";
}

class Download {
  readonly #options: DownloadOptions;
  readonly #signal: AbortSignal;
  readonly #patience: Patience;
  readonly #pace: Pace;
  readonly #open = new Map<PartFile, Open>();
  #change = Promise.withResolvers<void>();

  constructor(options: DownloadOptions, signal: AbortSignal) {
    const { request, progress } = options;
    this.#options = options;
    this.#signal = signal;
    this.#pace = new Pace(request.bytes_per_second, signal, options.clock);
    this.#patience = {
      signal,
      tries: request.tries,
      retryMs: request.retry_ms,
      onWait: (why, waitMs) => progress.waits(why, waitMs),
    };
    signal.addEventListener("abort", () => this.#change.resolve());
  }

  /** Works on files until all are done. */
  async work(parts: readonly PartFile[]): Promise<void> {
    const all = parts.map((part) => this.#of(part));
    for (;;) {
      this.#signal.throwIfAborted();
      // There may be thousands, and they end about in their order.
      while (all[0]?.state === "done") all.shift();
      const open = all.find(({ state, todo, busy }) =>
        state === "ranges" && (todo.length > 0 || busy === 0)
      );
      if (open !== undefined) {
        const range = open.todo.shift();
        if (range === undefined) await this.#check(open);
        else await this.#range(open, range);
        this.#changed();
      } else if (all.length === 0) {
        return;
      } else {
        await this.#change.promise;
      }
    }
  }

  #of(part: PartFile): Open {
    const known = this.#open.get(part);
    if (known !== undefined) return known;
    const { http, progress, request } = this.#options;
    const opened: Open = {
      part,
      transfer: new FileTransfer(part, {
        http,
        pace: this.#pace,
        stallMs: request.stall_ms,
        received: (bytes) => progress.received(bytes),
        forgot: (bytes) => progress.forgot(bytes),
      }),
      todo: [],
      busy: 0,
      corrupt: 0,
      // A file of unknown size comes whole.
      whole: part.size === undefined,
      state: "ranges",
    };
    opened.todo.push(...this.#ranges(opened));
    this.#open.set(part, opened);
    return opened;
  }

  #ranges({ part, whole }: Open): Interval[] {
    const { size, had } = part;
    const { chunk_bytes: chunk } = this.#options.request;
    const left = size === undefined ? [WHOLE] : missing(had, size, chunk);
    return left.length > 0 && whole ? [WHOLE] : [...left];
  }

  async #range(open: Open, range: Interval): Promise<void> {
    open.busy++;
    try {
      const outcome = await open.transfer.fetch(range, this.#patience);
      if (outcome === "no_ranges") {
        // One connection takes it from the start, when the others have noticed too.
        open.whole = true;
        open.todo.length = 0;
      }
    } finally {
      open.busy--;
    }
  }

  async #check(open: Open): Promise<void> {
    const { part } = open;
    const { progress } = this.#options;
    const left = this.#ranges(open);
    if (left.length > 0) {
      if (open.whole && part.hadBytes > 0) {
        progress.forgot(part.hadBytes);
        await part.restart();
      }
      open.todo.push(...left);
      return;
    }
    open.state = "checking";
    const { hash, path } = part.file;
    progress.verifying(true);
    const found = await part.check(this.#signal, (bytes) => progress.checked(bytes));
    progress.verifying(false);
    if (found.right) {
      await part.finish();
      open.state = "done";
      progress.fileDone();
      return;
    }
    open.corrupt++;
    const what = found.size === part.size
      ? `its hash is ${found.hash}, and ${hash?.hex} was promised`
      : `it has ${found.size} bytes, and ${part.size} were promised`;
    if (open.corrupt >= CORRUPT_TRIES) {
      await part.restart();
      throw new WeightsError(
        "corrupt",
        `${path} came spoilt ${open.corrupt} times: ${what}. The server, or a proxy before it, has ` +
          "another file than it says",
      );
    }
    progress.forgot(part.hadBytes);
    await part.restart();
    open.state = "ranges";
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
    if (this.#signal.aborted) this.#change.resolve();
  }
}

function lackingBytes(parts: readonly PartFile[]): number {
  return parts.reduce((sum, part) => sum + Math.max(0, (part.size ?? 0) - part.hadBytes), 0);
}

// What the system says of a full disk is said in the words of the check before it.
function onDisk(error: unknown): unknown {
  if (error instanceof WeightsError || !(error instanceof Error)) return error;
  if (/ENOSPC|No space left|EDQUOT|quota/i.test(error.message)) {
    return new WeightsError("disk_full", `The disk became full: ${errorText(error)}`, {
      cause: error,
    });
  }
  return error;
}
