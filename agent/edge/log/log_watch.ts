/**
 * Follows the log of one process while it runs, so that its first errors are known although the
 * file is bounded. They also lie beside it, for the next agent and for who asks for them.
 */
import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { LogDigest } from "../../core/diagnosis/log_digest.ts";
import { fileSize, readFrom } from "./log_file.ts";

/** Of one look; an engine that prints more is read from where it is now, not from where we were. */
const LOOK_BYTES_MAX = 1024 * 1024;

/** The file of the first errors in a process's folder. */
export function errorsFile(directory: string): string {
  return join(directory, "errors");
}

export class LogWatch {
  readonly digest = new LogDigest();
  readonly #file: string;
  readonly #errors: string;
  readonly #redact: (line: string) => string;
  #decoder = new TextDecoder();
  #at: number | undefined;
  #rest = "";
  #written = 0;
  #looking: Promise<void> = Promise.resolve();

  constructor(
    files: { readonly log: string; readonly errors: string },
    redact: (line: string) => string,
  ) {
    this.#file = files.log;
    this.#errors = files.errors;
    this.#redact = redact;
  }

  /** Reads what was printed since the last look. Looks go one after the other. */
  look(): Promise<void> {
    const looking = this.#looking.then(() => this.#look());
    // A look that fails is its caller's to tell; the next one begins all the same.
    this.#looking = looking.catch(() => {});
    return looking;
  }

  async #look(): Promise<void> {
    const size = await fileSize(this.#file) ?? 0;
    this.#at ??= size > LOOK_BYTES_MAX ? await this.#rejoin() : 0;
    // Shorter than where we were: it was cut.
    if (size < this.#at) this.#skipTo(0);
    if (size - this.#at > LOOK_BYTES_MAX) this.#skipTo(size - LOOK_BYTES_MAX);
    while (this.#at < size) {
      const read = await readFrom(this.#file, this.#at);
      if (read === undefined || read.bytes.length === 0) break;
      this.#at += read.bytes.length;
      this.#take(this.#decoder.decode(read.bytes, { stream: true }));
    }
    await this.#write();
  }

  /** Takes a last line that no newline ends: nothing follows it any more. */
  async end(): Promise<void> {
    await this.look();
    if (this.#rest !== "") this.digest.push(this.#rest);
    this.#rest = "";
    await this.#write();
  }

  // The errors that an earlier agent saw; the log itself may have lost them.
  async #rejoin(): Promise<number> {
    for (const line of (await readTextIfExists(this.#errors) ?? "").split("\n")) {
      if (line !== "") this.digest.push(line);
    }
    this.#written = this.digest.firstErrors.length;
    return 0;
  }

  #skipTo(at: number): void {
    this.#at = at;
    this.#rest = "";
    this.#decoder = new TextDecoder();
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = lines.pop() ?? "";
    // Without a newline for this long it is no line of words.
    if (this.#rest.length > LOOK_BYTES_MAX) this.#rest = "";
    for (const line of lines) this.digest.push(line);
  }

  async #write(): Promise<void> {
    const { firstErrors } = this.digest;
    if (firstErrors.length === this.#written) return;
    this.#written = firstErrors.length;
    const text = firstErrors.map((line) => `${this.#redact(line)}\n`).join("");
    await writeFileAtomic(this.#errors, text);
  }
}
