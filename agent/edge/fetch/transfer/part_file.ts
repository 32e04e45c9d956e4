/**
 * A file on its way, aside from where it will be: its part with the bytes, in their places, and its
 * journal with what was written. The first line of the journal says which file it is of, so that
 * another one's bytes are never taken for it. A small file has no journal: it comes again.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import {
  type Interval,
  type Intervals,
  journalLine,
  merged,
  readJournal,
  sizeOf,
} from "../../../core/weights/intervals.ts";
import type { FileHash, RemoteFile } from "../remote/remote_file.ts";
import { asidePath } from "./aside.ts";

const FILE_MODE = 0o640;
const HASH_BUFFER_BYTES = 1024 ** 2;
/** To fetch so much again costs no more than to note it, and a repository may have thousands. */
const SMALL_BYTES = 64 * 1024;

/** What was read back. */
export interface OnDisk {
  readonly size: number;
  /** In the form of the one that was promised; undefined: none was. */
  readonly hash: string | undefined;
  /** It is what was promised. */
  readonly right: boolean;
}

export class PartFile {
  readonly file: RemoteFile;
  /** Undefined while the server has not said. */
  #size: number | undefined;
  readonly #path: string;
  readonly #journalPath: string;
  /** Where bytes are written to until the file is whole. */
  readonly part: string;
  readonly #small: boolean;
  /** Settles when the part is there, and its bytes are of this file. */
  #begun: Promise<unknown> | undefined;
  #had: Intervals = [];
  #journal: Deno.FsFile | undefined;

  /** `folder` is where the whole file will be; `openAside` has been there. */
  constructor(folder: string, file: RemoteFile) {
    this.file = file;
    this.#size = file.size;
    this.#small = file.size !== undefined && file.size <= SMALL_BYTES;
    this.#path = join(folder, file.path);
    this.part = asidePath(folder, file.path, ".part");
    this.#journalPath = asidePath(folder, file.path, ".journal");
  }

  get size(): number | undefined {
    return this.#size;
  }

  get had(): Intervals {
    return this.#had;
  }

  get hadBytes(): number {
    return sizeOf(this.#had);
  }

  /** Takes up what an earlier run left. True when the file is whole already. */
  async open(): Promise<boolean> {
    if (await this.#isWhole()) return true;
    if (this.#small) return false;
    const text = await readTextIfExists(this.#journalPath) ?? "";
    const [head = "", ...lines] = text.split(/(?<=\n)/);
    const kept = head === this.#head() && this.#size !== undefined && await exists(this.part);
    if (!kept) {
      await this.restart();
      return false;
    }
    this.#begun = Promise.resolve();
    this.#had = readJournal(lines.join(""), this.#size ?? 0);
    // A line that a crash cut short must not grow into one that was never meant.
    await this.#writeJournal(this.#had.map(journalLine).join(""));
    return false;
  }

  /** The part, to be written to. The first time it is made, and empty. */
  async writer(): Promise<Deno.FsFile> {
    if (this.#begun === undefined) {
      const first = Deno.open(this.part, {
        write: true,
        create: true,
        truncate: true,
        mode: FILE_MODE,
      });
      this.#begun = first;
      return await first;
    }
    // Nobody writes before it is empty.
    await this.#begun;
    return await Deno.open(this.part, { write: true });
  }

  /** The server has sent all of it, and did not say before how much that is. */
  learn(size: number): void {
    this.#size = size;
  }

  /** Nothing that was written counts any more. */
  async restart(): Promise<void> {
    this.#had = [];
    this.#begun = undefined;
    (await this.writer()).close();
    if (!this.#small) await this.#writeJournal("");
  }

  /** Bytes of this interval are in the part now. */
  note(interval: Interval): void {
    if (interval.end <= interval.start) return;
    this.#had = merged([...this.#had, interval]);
    if (this.#small) return;
    // Only of files that are being written: a repository may have thousands.
    this.#journal ??= Deno.openSync(this.#journalPath, { append: true });
    const bytes = new TextEncoder().encode(journalLine(interval));
    for (let rest = bytes; rest.length > 0;) rest = rest.subarray(this.#journal.writeSync(rest));
  }

  /** Reads the part back from the disk: once it is what was promised, it is there for good. */
  async check(signal: AbortSignal, read: (bytes: number) => void): Promise<OnDisk> {
    // Of an empty file nothing has come.
    if (this.#begun === undefined) (await this.writer()).close();
    using file = await Deno.open(this.part, { read: true, write: true });
    const { size } = await file.stat();
    const promised = this.file.hash;
    const hash = promised === undefined
      ? undefined
      : await hashOf(file, { size, algorithm: promised.algorithm, signal, read });
    const right = size === this.#size && hash === promised?.hex;
    if (right) await file.syncData();
    return { size, hash, right };
  }

  /** `check` found it right: from now on it is the file. */
  async finish(): Promise<void> {
    this.close();
    await Deno.rename(this.part, this.#path);
    if (!this.#small) await Deno.remove(this.#journalPath);
  }

  close(): void {
    this.#journal?.close();
    this.#journal = undefined;
  }

  // What was renamed was checked before.
  async #isWhole(): Promise<boolean> {
    try {
      const { isFile, size } = await Deno.lstat(this.#path);
      if (!isFile || (this.#size !== undefined && size !== this.#size)) return false;
      this.#size = size;
      this.#had = size === 0 ? [] : [{ start: 0, end: size }];
      return true;
    } catch {
      return false;
    }
  }

  #head(): string {
    const { hash, identity } = this.file;
    return `heddle-part 1 ${this.#size ?? "?"} ${hash?.hex ?? encodeURIComponent(identity)}\n`;
  }

  async #writeJournal(lines: string): Promise<void> {
    this.close();
    // A crash meanwhile must not cost what was noted before.
    await writeFileAtomic(this.#journalPath, this.#head() + lines, { mode: FILE_MODE });
  }
}

async function hashOf(
  file: Deno.FsFile,
  { size, algorithm, signal, read }: {
    readonly size: number;
    readonly algorithm: FileHash["algorithm"];
    readonly signal: AbortSignal;
    readonly read: (bytes: number) => void;
  },
): Promise<string> {
  const hash = createHash(algorithm === "git" ? "sha1" : "sha256");
  // As git names a file's content.
  if (algorithm === "git") hash.update(`blob ${size}\0`);
  const buffer = new Uint8Array(Math.min(size + 1, HASH_BUFFER_BYTES));
  for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
    signal.throwIfAborted();
    hash.update(buffer.subarray(0, count));
    read(count);
  }
  return hash.digest("hex");
}

async function exists(path: string): Promise<boolean> {
  try {
    return (await Deno.lstat(path)).isFile;
  } catch {
    return false;
  }
}
