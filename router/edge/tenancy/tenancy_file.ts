/**
 * Keys, limits and prices on disk, so that a router that starts while control is away knows them. A
 * hundred thousand keys cannot be written whole at each change: the file is the last snapshot's
 * messages as they came, and after them each change. A key that was revoked stays revoked.
 *
 * After the first line come frames: length (4 bytes, big endian), the moment it was received (8
 * bytes, ms since 1970), and the message.
 */
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { logger } from "@heddle/common/log";
import { errorText } from "@heddle/proto/error";
import { type WatchResponse, WatchResponseSchema } from "@heddle/proto/gen/router";
import { FoldedTenancy } from "./folded_tenancy.ts";

const HEAD = new TextEncoder().encode("heddle-tenancy 1\n");
const FRAME_HEAD_BYTES = 12;
/** Changes that outgrow the snapshot by this are folded into it. */
const CHANGES_BYTES_MAX = 8 * 2 ** 20;

export interface SavedTenancy {
  readonly message: WatchResponse;
  readonly receivedAtMs: number;
}

export class TenancyFile {
  readonly #path: string;
  readonly #log = logger("router", "tenancy");
  /** One after the other, in the order in which they came. */
  #writing: Promise<void> = Promise.resolve();
  /** Of the snapshot that is arriving. */
  #frames: Uint8Array[] = [];
  #snapshotBytes = 0;
  #changesBytes = 0;
  #broken = false;

  constructor(directory: string) {
    this.#path = join(directory, "tenancy.bin");
  }

  /** The saved messages in order; none when there is nothing, or nothing of use, and then says why. */
  async *load(): AsyncGenerator<SavedTenancy> {
    try {
      yield* this.#read();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      this.#log.warning("Cannot use the saved keys: waiting for control", {
        file: this.#path,
        why: errorText(error),
      });
    }
  }

  /** Keeps a message that has been applied. */
  save(message: WatchResponse, receivedAtMs: number): void {
    if (!message.snapshot) {
      this.#frames = [];
      const sync = message.removedKeys.length > 0;
      this.#then(() => this.#append(frameOf(message, receivedAtMs), sync));
      return;
    }
    const frames = this.#frames;
    this.#then(async () => {
      // A thousand keys take their time to read, and then to write: others may run in between.
      await turn();
      frames.push(frameOf(message, receivedAtMs));
    });
    if (!message.snapshotEnd) return;
    this.#frames = [];
    this.#then(() => this.#replace(frames));
  }

  /** Chunks of an unfinished snapshot are void. */
  forgetPending(): void {
    this.#frames = [];
  }

  /** Waits until all is written. */
  flush(): Promise<void> {
    return this.#writing;
  }

  #then(write: () => Promise<void>): void {
    this.#writing = this.#writing.then(write).catch((error: unknown) => {
      // What follows in the file would lack this; the next snapshot mends it.
      this.#broken = true;
      this.#log.error("Cannot save keys: a restart without control would not know the latest", {
        file: this.#path,
        why: errorText(error),
      });
    });
  }

  async *#read(): AsyncGenerator<SavedTenancy> {
    const bytes = await Deno.readFile(this.#path);
    if (!startsWith(bytes, HEAD)) throw new Error("it is of another version");
    this.#snapshotBytes = bytes.length;
    for (const [frame, receivedAtMs] of framesOf(bytes.subarray(HEAD.length))) {
      yield { message: fromBinary(WatchResponseSchema, frame), receivedAtMs };
      // A message holds a thousand keys; between two of them others may run.
      await turn();
    }
  }

  async #replace(frames: readonly Uint8Array[]): Promise<void> {
    const next = `${this.#path}.next`;
    const file = await Deno.open(next, { write: true, create: true, truncate: true, mode: 0o600 });
    let bytes = HEAD.length;
    try {
      await writeAll(file, HEAD);
      for (const frame of frames) {
        await writeAll(file, frame);
        bytes += frame.length;
      }
      await file.sync();
    } finally {
      file.close();
    }
    await Deno.rename(next, this.#path);
    this.#snapshotBytes = bytes;
    this.#changesBytes = 0;
    this.#broken = false;
  }

  async #append(frame: Uint8Array, sync: boolean): Promise<void> {
    if (this.#broken) return await this.#drop();
    const file = await Deno.open(this.#path, { write: true, append: true, mode: 0o600 });
    try {
      await writeAll(file, frame);
      if (sync) await file.sync();
    } finally {
      file.close();
    }
    this.#changesBytes += frame.length;
    if (this.#changesBytes > this.#snapshotBytes + CHANGES_BYTES_MAX) await this.#compact();
  }

  /** Writes what the changes have come to in the place of them. */
  async #compact(): Promise<void> {
    const folded = new FoldedTenancy();
    for await (const saved of this.#read()) folded.take(saved);
    const frames: Uint8Array[] = [];
    const now = Date.now();
    for (const message of folded.messages(now)) frames.push(frameOf(message, now));
    await this.#replace(frames);
  }

  /** A file that lacks a change may hold a revoked key: then it is better gone. */
  async #drop(): Promise<void> {
    await Deno.remove(this.#path).catch((error: unknown) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    this.#broken = true;
  }
}

function frameOf(message: WatchResponse, receivedAtMs: number): Uint8Array {
  const { snapshot, snapshotEnd, keys, removedKeys, scopes, removedScopes, prices, removedPrices } =
    message;
  const body = toBinary(
    WatchResponseSchema,
    create(WatchResponseSchema, {
      snapshot,
      snapshotEnd,
      keys,
      removedKeys,
      scopes,
      removedScopes,
      prices,
      removedPrices,
    }),
  );
  const frame = new Uint8Array(FRAME_HEAD_BYTES + body.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, body.length);
  view.setFloat64(4, receivedAtMs);
  frame.set(body, FRAME_HEAD_BYTES);
  return frame;
}

/** Whole frames only: a crash may have cut the last one. */
function* framesOf(bytes: Uint8Array): Generator<[frame: Uint8Array, receivedAtMs: number]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at + FRAME_HEAD_BYTES <= bytes.length;) {
    const start = at + FRAME_HEAD_BYTES;
    const end = start + view.getUint32(at);
    if (end > bytes.length) return;
    yield [bytes.subarray(start, end), view.getFloat64(at + 4)];
    at = end;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

function startsWith(bytes: Uint8Array, head: Uint8Array): boolean {
  return head.every((byte, index) => bytes[index] === byte);
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(await file.write(rest));
}
