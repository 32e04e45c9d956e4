/**
 * Keeps uploaded bodies until an engine has them: the first bytes in memory, the rest in a file
 * without a name. A request may be tried on several engines, so its body must be there more than
 * once, and a few large ones at a time would fill the memory.
 */
import { errorText } from "@heddle/proto/error";

/** What is kept in memory of each upload; most are small. */
const MEMORY_BYTES = 262_144;
const READ_BYTES = 65_536;

export interface SpoolRange {
  readonly start: number;
  readonly end: number;
}

/** Thrown when a body cannot be kept. */
export class SpoolError extends Error {}

/** Where the files are made, and how much all of them together may hold. */
export class SpoolRoom {
  readonly #folder: string;
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(options: { readonly folder: string; readonly bytesMax: number }) {
    this.#folder = options.folder;
    this.#bytesMax = options.bytesMax;
  }

  /** Bytes on disk now. */
  get bytes(): number {
    return this.#bytes;
  }

  open(): Spool {
    return new Spool(this);
  }

  /** A file that is gone once it is closed, also when the process dies. */
  async file(): Promise<Deno.FsFile> {
    try {
      await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const path = `${this.#folder}/${crypto.randomUUID()}`;
      const file = await Deno.open(path, { read: true, write: true, createNew: true, mode: 0o600 });
      await Deno.remove(path);
      return file;
    } catch (error) {
      throw new SpoolError(`Cannot make a file in ${this.#folder}: ${errorText(error)}`, {
        cause: error,
      });
    }
  }

  take(bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new SpoolError(`The uploads in flight hold ${this.#bytes} bytes already`);
    }
    this.#bytes += bytes;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** One body. Written first, then read, as often as needed. */
export class Spool implements Disposable {
  readonly #room: SpoolRoom;
  readonly #memory: Uint8Array[] = [];
  #memoryBytes = 0;
  #file: Deno.FsFile | undefined;
  #fileBytes = 0;
  /** The last read of the file, which has but one position. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(room: SpoolRoom) {
    this.#room = room;
  }

  get length(): number {
    return this.#memoryBytes + this.#fileBytes;
  }

  /** Throws `SpoolError`. */
  async write(chunk: Uint8Array): Promise<void> {
    if (this.#file === undefined && this.#memoryBytes + chunk.length <= MEMORY_BYTES) {
      this.#memory.push(chunk);
      this.#memoryBytes += chunk.length;
      return;
    }
    this.#room.take(chunk.length);
    this.#fileBytes += chunk.length;
    this.#file ??= await this.#room.file();
    try {
      for (let at = 0; at < chunk.length;) at += await this.#file.write(chunk.subarray(at));
    } catch (error) {
      throw new SpoolError(`Cannot write an upload: ${errorText(error)}`, { cause: error });
    }
  }

  /** The bytes of `range`, in order. */
  async *read({ start, end }: SpoolRange): AsyncGenerator<Uint8Array> {
    let from = 0;
    for (const part of this.#memory) {
      const piece = part.subarray(Math.max(0, start - from), Math.max(0, end - from));
      if (piece.length > 0) yield piece;
      from += part.length;
    }
    for (let at = Math.max(0, start - from); at < end - from;) {
      const buffer = new Uint8Array(Math.min(READ_BYTES, end - from - at));
      const count = await this.#readAt(at, buffer);
      if (count === null) throw new Error("An upload is shorter than what was written of it");
      at += count;
      yield buffer.subarray(0, count);
    }
  }

  /** In turn: the reader of a try that failed may still be at it when the next one begins. */
  #readAt(at: number, buffer: Uint8Array): Promise<number | null> {
    const file = this.#file;
    if (file === undefined) throw new Error("The upload is gone");
    const turn = this.#reading.then(async () => {
      await file.seek(at, Deno.SeekMode.Start);
      return await file.read(buffer);
    });
    this.#reading = turn.catch(() => {});
    return turn;
  }

  [Symbol.dispose](): void {
    this.#file?.close();
    this.#room.give(this.#fileBytes);
    this.#file = undefined;
    this.#fileBytes = 0;
    this.#memory.length = 0;
    this.#memoryBytes = 0;
  }
}
