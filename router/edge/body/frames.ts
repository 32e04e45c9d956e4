/**
 * Unpacks zstd of any number of frames (RFC 8878, 3.1), with skippable ones between them. The
 * runtime's own decompressor stops after the first frame, says nothing of what follows, and takes
 * a frame that is cut short for a whole one.
 */
import { Transform, type TransformCallback } from "node:stream";
import { createZstdDecompress } from "node:zlib";

/** Compressors that split their work make a frame of each megabyte or so. */
const FRAMES_MAX = 1_024;

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a5;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const SIZE_BYTES = [0, 2, 4, 8] as const;

type Phase =
  | "magic"
  | "descriptor"
  | "header"
  | "skip_size"
  | "skip"
  | "block"
  | "data"
  | "checksum";

/** Follows the framing and no more: where one frame ends and the next one begins. */
class Framing {
  #phase: Phase = "magic";
  #field: number[] = [];
  /** Bytes until the next phase. */
  #left = 4;
  #checksum = false;
  #last = false;

  /** Between two frames, where the whole may end. */
  get outside(): boolean {
    return this.#phase === "magic" && this.#field.length === 0;
  }

  /** Takes bytes from `at` on; returns where the frame ends or `chunk` does, or undefined: no zstd. */
  take(chunk: Uint8Array, at: number): number | undefined {
    let to = at;
    do {
      const step = Math.min(this.#left, chunk.length - to);
      if (this.#phase !== "data" && this.#phase !== "skip") {
        this.#field.push(...chunk.subarray(to, to + step));
      }
      to += step;
      this.#left -= step;
      if (this.#left > 0) return to;
      if (!this.#next()) return undefined;
    } while (to < chunk.length && !this.outside);
    return to;
  }

  /** A phase is over: what comes next, until something of it has bytes. */
  #next(): boolean {
    const value = this.#field.reduceRight((sum, byte) => sum * 256 + byte, 0);
    const first = this.#field[0] ?? 0;
    this.#field = [];
    switch (this.#phase) {
      case "magic":
        if (Math.floor(value / 16) === SKIPPABLE_MAGIC) return this.#enter("skip_size", 4);
        return value === MAGIC && this.#enter("descriptor", 1);
      case "descriptor": {
        const single = (first & 0x20) !== 0;
        const sizeFlag = first >> 6;
        this.#checksum = (first & 4) !== 0;
        const size = sizeFlag === 0 && single ? 1 : SIZE_BYTES[sizeFlag] ?? 0;
        return this.#enter("header", (single ? 0 : 1) + (DICTIONARY_BYTES[first & 3] ?? 0) + size);
      }
      case "header":
      case "data":
        if (this.#phase === "header" || !this.#last) return this.#enter("block", 3);
        return this.#enter("checksum", this.#checksum ? 4 : 0);
      case "skip_size":
        return this.#enter("skip", value);
      case "block": {
        this.#last = (value & 1) !== 0;
        const type = (value >> 1) & 3;
        // Of a run there is one byte, whatever its length.
        return type !== 3 && this.#enter("data", type === 1 ? 1 : value >> 3);
      }
      case "skip":
      case "checksum":
        return this.#enter("magic", 4);
    }
  }

  #enter(phase: Phase, bytes: number): boolean {
    this.#phase = phase;
    this.#left = bytes;
    return bytes > 0 || this.#next();
  }
}

/** A stream that takes zstd and gives what it holds. */
export function createZstdFrames(): Transform {
  return new ZstdFrames();
}

class ZstdFrames extends Transform {
  readonly #framing = new Framing();
  #frame: Transform | undefined;
  #frames = 0;

  override _transform(chunk: Uint8Array, _: BufferEncoding, done: TransformCallback): void {
    this.#from(chunk, 0, done);
  }

  override _flush(done: TransformCallback): void {
    done(this.#framing.outside ? null : new Error("The last frame is cut short"));
  }

  override _read(size: number): void {
    this.#frame?.resume();
    super._read(size);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#frame?.destroy();
    done(error);
  }

  #from(chunk: Uint8Array, at: number, done: TransformCallback): void {
    if (at >= chunk.length) return done();
    const to = this.#framing.take(chunk, at);
    if (to === undefined) return done(new Error("This is not zstd"));
    const rest = () => this.#from(chunk, to, done);
    this.#frame ??= this.#open(done);
    const frame = this.#frame;
    if (frame === undefined) return;
    frame.write(chunk.subarray(at, to), (error) => {
      // Told by the frame's own event.
      if (error !== undefined && error !== null) return;
      if (!this.#framing.outside) return rest();
      // Until then it is still to be resumed: what it holds may be more than its reader takes at once.
      frame.once("end", () => {
        this.#frame = undefined;
        rest();
      });
      frame.end();
    });
  }

  #open(done: TransformCallback): Transform | undefined {
    if (++this.#frames > FRAMES_MAX) {
      done(new Error(`More than ${FRAMES_MAX} frames`));
      return undefined;
    }
    const frame = createZstdDecompress();
    frame.on("error", (error) => this.destroy(error));
    frame.on("data", (part: Uint8Array) => {
      if (!this.push(part)) frame.pause();
    });
    return frame;
  }
}
