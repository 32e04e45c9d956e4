/**
 * Follows the kernel's log. Deno opens nothing below /dev by that name, so the agent's unit binds
 * /dev/kmsg elsewhere. Each read gives one record, from the boot's first that is still kept, and at
 * the end waits for the next: the reading goes on for the life of the process.
 */

/** Longest record of the kernel. */
const RECORD_BYTES_MAX = 8192;

/** A read that waits so long, in ms, has come to the end of what there is. */
const CAUGHT_UP_MS = 100;

/** Most read errors in a row: the kernel answers EPIPE once for records that it dropped. */
const ERROR_COUNT_MAX = 8;

export type KernelLogState = "unread" | "following" | "unreadable" | "ended";

export class KernelLog {
  readonly #path: string;
  readonly #onLine: (line: string) => void;
  readonly #caughtUp = Promise.withResolvers<void>();
  #state: KernelLogState = "unread";
  #following: Promise<void> = Promise.resolve();

  constructor(path: string, onLine: (line: string) => void) {
    this.#path = path;
    this.#onLine = onLine;
  }

  get state(): KernelLogState {
    return this.#state;
  }

  /** Begins to follow, once; resolves when what was logged so far has been read. Never rejects. */
  async start(): Promise<void> {
    if (this.#state === "unread") {
      this.#state = "following";
      this.#following = this.#follow();
    }
    await this.#caughtUp.promise;
  }

  /** Resolves when the log has ended, as a recording does and the kernel's own never. */
  async ended(): Promise<void> {
    await this.#following;
  }

  async #follow(): Promise<void> {
    try {
      const file = await Deno.open(this.#path);
      try {
        await this.#readAll(file);
      } finally {
        file.close();
      }
      this.#state = "ended";
    } catch {
      this.#state = "unreadable"; // told as such: the log is one source of several
    } finally {
      this.#caughtUp.resolve();
    }
  }

  async #readAll(file: Deno.FsFile): Promise<void> {
    const buffer = new Uint8Array(RECORD_BYTES_MAX);
    const decoder = new TextDecoder();
    for (let errors = 0; errors < ERROR_COUNT_MAX;) {
      const timer = setTimeout(() => this.#caughtUp.resolve(), CAUGHT_UP_MS);
      try {
        const count = await file.read(buffer);
        if (count === null) return;
        errors = 0;
        for (const line of decoder.decode(buffer.subarray(0, count)).split("\n")) {
          this.#onLine(line);
        }
      } catch {
        errors += 1;
      } finally {
        clearTimeout(timer);
      }
    }
  }
}
