/** Fetches ranges of one file into its part, and notes what was written as it is written. */
import { WeightsError } from "../../../core/weights/failure.ts";
import type { Interval } from "../../../core/weights/intervals.ts";
import { type Answer, type Http, Retriable, shown } from "../net/http.ts";
import type { Pace } from "./pace.ts";
import type { PartFile } from "./part_file.ts";
import { gaveUp, type Patience, waitAfter } from "../net/patience.ts";
import { readBody } from "../net/read_body.ts";
import { type FileTag, isOther, tagOf } from "../remote/remote_file.ts";

/** Written bytes are noted this often: a crash costs each connection so many, or so much time. */
const NOTE_BYTES = 1024 ** 2;
const NOTE_MS = 250;
/** The whole of a pointer, in the place of the file that it points to. */
const POINTER_BYTES_MAX = 1_024;

export interface TransferOptions {
  readonly http: Http;
  readonly pace: Pace;
  readonly stallMs: number;
  readonly received: (bytes: number) => void;
  /** So many bytes that were there do not count any more. */
  readonly forgot: (bytes: number) => void;
}

export class FileTransfer {
  readonly #part: PartFile;
  readonly #options: TransferOptions;
  /** Where the hub redirected to, for all ranges: asking it for each would be asking too often. */
  #target: string | undefined;
  /** Of the content that all ranges must be of. */
  #tag: FileTag | undefined;

  constructor(part: PartFile, options: TransferOptions) {
    this.#part = part;
    this.#options = options;
  }

  /**
   * Fetches a range, with as many tries as it takes as long as each brings something. A range without
   * an end is the whole file, from a server that knows no ranges; each try begins at its start.
   */
  async fetch(range: Interval, patience: Patience): Promise<"fetched" | "no_ranges"> {
    let at = range.start;
    let failures = 0;
    for (;;) {
      const before = at;
      try {
        return await this.#once({ start: at, end: range.end }, (written) => at = written, patience);
      } catch (error) {
        patience.signal.throwIfAborted();
        if (!(error instanceof Retriable)) throw error;
        if (error.stale) this.#target = undefined;
        failures = at > before && !error.stalled ? 1 : failures + 1;
        if (failures >= patience.tries) {
          throw gaveUp(`Cannot fetch ${this.#part.file.path}`, error, failures);
        }
        await waitAfter(error, failures, patience);
      }
    }
  }

  async #once(
    range: Interval,
    wrote: (at: number) => void,
    { signal }: Patience,
  ): Promise<"fetched" | "no_ranges"> {
    const part = this.#part;
    const whole = range.end === Infinity;
    const { response, url } = await this.#options.http.ask(this.#target ?? part.file.url, {
      redirected: this.#target !== undefined,
      headers: whole ? {} : { range: `bytes=${range.start}-${range.end - 1}` },
      signal,
    });
    if (url !== part.file.url) this.#target = url;
    const end = await this.#accepted({ response, url }, range);
    if (end === undefined) {
      await response.body?.cancel();
      return "no_ranges";
    }
    if (whole) await this.#writeWhole({ response, url }, end, signal);
    else await this.#write({ response, url }, { start: range.start, end }, { wrote, signal });
    return "fetched";
  }

  async #write(
    { response, url }: Answer,
    { start, end }: Interval,
    how: { readonly wrote: (at: number) => void; readonly signal: AbortSignal },
  ): Promise<void> {
    const { stallMs, pace, received } = this.#options;
    const part = this.#part;
    const checked = part.file.hash !== undefined;
    using file = await part.writer();
    if (start > 0) await file.seek(start, Deno.SeekMode.Start);
    let at = start;
    let notedAt = start;
    let dueAt = performance.now() + NOTE_MS;
    const note = () => {
      // Where no hash will tell, the bytes are on the disk itself before they count.
      if (!checked) file.syncDataSync();
      part.note({ start: notedAt, end: at });
      notedAt = at;
      dueAt = performance.now() + NOTE_MS;
      how.wrote(at);
    };
    try {
      await readBody(response, {
        stallMs,
        signal: how.signal,
        take(bytes) {
          if (at + bytes.length > end) throw tooLong(url);
          writeAll(file, bytes);
          at += bytes.length;
          received(bytes.length);
          const due = at - notedAt >= NOTE_BYTES || performance.now() >= dueAt;
          if (checked && due) note();
          return pace.take(bytes.length);
        },
      });
    } finally {
      note();
    }
    if (at < end) throw new Retriable(`${shown(url)} broke off ${end - at} bytes early`);
  }

  async #writeWhole({ response, url }: Answer, end: number, signal: AbortSignal): Promise<void> {
    const { stallMs, pace, received, forgot } = this.#options;
    const part = this.#part;
    let at = 0;
    const file = await part.writer();
    try {
      await file.truncate();
      await readBody(response, {
        stallMs,
        signal,
        take(bytes) {
          if (at + bytes.length > end) throw tooLong(url);
          writeAll(file, bytes);
          at += bytes.length;
          received(bytes.length);
          return pace.take(bytes.length);
        },
      });
      if (end !== Infinity && at < end) {
        throw new Retriable(`${shown(url)} broke off ${end - at} bytes early, and knows no ranges`);
      }
      file.syncDataSync();
    } catch (error) {
      forgot(at);
      throw error;
    } finally {
      file.close();
    }
    part.learn(at);
    part.note({ start: 0, end: at });
  }

  /**
   * Where the body ends; Infinity when that is not known, undefined when the server took no notice of
   * the range. Throws when it is not what was asked for.
   */
  async #accepted({ response, url }: Answer, range: Interval): Promise<number | undefined> {
    const { size, file } = this.#part;
    const { status, headers } = response;
    // A hash would tell in the end; without one, ranges of two contents would make a file of neither.
    if (file.hash === undefined) {
      this.#tag ??= file.tag ?? tagOf(headers);
      if (isOther(this.#tag, tagOf(headers))) {
        await response.body?.cancel();
        throw replaced(url);
      }
    }
    const [, first, last, total] =
      /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
    if (status === 206 && range.end !== Infinity) {
      if (
        Number(first) === range.start && Number(last) === range.end - 1 && sameSize(total, size)
      ) {
        return range.end;
      }
      await this.#demandNoPointer(response, Number(total), url);
      if (!sameSize(total, size)) throw changed(url, Number(total), size);
      throw new Retriable(`${shown(url)} sent another range than was asked for`, { stale: true });
    }
    const text = headers.get("content-length");
    const length = text === null ? undefined : Number(text);
    if (size !== undefined && length !== undefined && length !== size) {
      await this.#demandNoPointer(response, length, url);
      throw changed(url, length, size);
    }
    if (range.end === Infinity) return size ?? length ?? Infinity;
    // All of it was asked for as a range, and all of it comes.
    return range.start === 0 && range.end === size ? size : undefined;
  }

  async #demandNoPointer(response: Response, length: number, url: string): Promise<void> {
    if (length > POINTER_BYTES_MAX) return void await response.body?.cancel();
    const text = await response.text().catch(() => "");
    if (text.startsWith("version https://git-lfs")) {
      throw new WeightsError(
        "corrupt",
        `${shown(url)} is a Git LFS pointer in the place of the file: this mirror does not serve ` +
          "large files",
      );
    }
  }
}

function sameSize(total: string | undefined, size: number | undefined): boolean {
  return total === "*" || size === undefined || Number(total) === size;
}

function changed(url: string, has: number, promised: number | undefined): WeightsError {
  return new WeightsError(
    "changed",
    `${shown(url)} has ${has} bytes, and ${promised} were promised`,
  );
}

function replaced(url: string): WeightsError {
  return new WeightsError(
    "changed",
    `${
      shown(url)
    } is not the file that it was when the fetch began. Where servers answer in turns ` +
      "and call one file differently, put SHA256SUMS beside it and name the folder",
  );
}

function tooLong(url: string): WeightsError {
  return new WeightsError("corrupt", `${shown(url)} sent more bytes than it promised`);
}

function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(file.writeSync(rest));
}
