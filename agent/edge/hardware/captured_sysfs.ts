/** A sysfs that was written down, and the one that writes another down as it is read. */

import {
  type CapturedEntry,
  namesBelow,
  type SysfsCapture,
} from "../../core/host/sysfs_capture.ts";
import { type Attribute, byNumber, type Listing, type Sysfs } from "./sysfs.ts";

/** Answers from a capture. */
export class CapturedSysfs implements Sysfs {
  readonly root: string;
  readonly #capture: SysfsCapture;

  /** `root` is for messages. */
  constructor(root: string, capture: SysfsCapture) {
    this.root = root;
    this.#capture = capture;
  }

  attribute(path: string): Promise<Attribute> {
    const entry = this.#capture.get(path);
    if (entry === undefined) return Promise.resolve({ kind: "missing" });
    if (entry.kind === "text") return Promise.resolve(entry);
    return Promise.resolve(failure(entry));
  }

  list(path: string): Promise<Listing> {
    const entry = this.#capture.get(path);
    if (entry?.kind === "denied" || entry?.kind === "unreadable") {
      return Promise.resolve(failure(entry));
    }
    const names = namesBelow(this.#capture, path);
    return Promise.resolve(
      names === undefined
        ? { kind: "missing" }
        : { kind: "names", names: [...names].sort(byNumber) },
    );
  }

  isPresent(path: string): Promise<boolean> {
    return Promise.resolve(namesBelow(this.#capture, path) !== undefined);
  }

  target(path: string): Promise<string | undefined> {
    const entry = this.#capture.get(path);
    return Promise.resolve(entry?.kind === "link" ? entry.target : undefined);
  }

  holds(path: string, word: string): Promise<boolean> {
    const entry = this.#capture.get(path);
    return Promise.resolve(entry?.kind === "text" && entry.text.includes(word));
  }
}

function failure(entry: CapturedEntry): Exclude<Attribute, { readonly kind: "text" }> {
  return entry.kind === "denied"
    ? { kind: "denied", message: "Permission denied, when it was captured" }
    : { kind: "unreadable", message: "Invalid argument, when it was captured" };
}

/** Passes everything on to `inner` and keeps what it answered. */
export class RecordingSysfs implements Sysfs {
  readonly #inner: Sysfs;
  readonly #entries = new Map<string, CapturedEntry>();

  constructor(inner: Sysfs) {
    this.#inner = inner;
  }

  get root(): string {
    return this.#inner.root;
  }

  /** What was read so far. */
  capture(): SysfsCapture {
    return this.#entries;
  }

  async attribute(path: string): Promise<Attribute> {
    const answer = await this.#inner.attribute(path);
    this.#keep(path, answer);
    return answer;
  }

  async list(path: string): Promise<Listing> {
    const answer = await this.#inner.list(path);
    if (answer.kind !== "names") this.#keep(path, answer);
    else {
      this.#entries.set(path, { kind: "directory" });
      // A name may belong to a directory or a file; what is read of it later takes its place.
      for (const name of answer.names) {
        const at = `${path}/${name}`;
        if (!this.#entries.has(at)) this.#entries.set(at, { kind: "directory" });
      }
    }
    return answer;
  }

  async isPresent(path: string): Promise<boolean> {
    const answer = await this.#inner.isPresent(path);
    if (answer && !this.#entries.has(path)) this.#entries.set(path, { kind: "directory" });
    return answer;
  }

  async target(path: string): Promise<string | undefined> {
    const answer = await this.#inner.target(path);
    if (answer !== undefined) this.#entries.set(path, { kind: "link", target: answer });
    return answer;
  }

  async holds(path: string, word: string): Promise<boolean> {
    const answer = await this.#inner.holds(path, word);
    // Of a binary only the word is kept: the rest may hold serial numbers.
    if (answer) this.#entries.set(path, { kind: "text", text: word });
    return answer;
  }

  #keep(path: string, answer: Attribute): void {
    switch (answer.kind) {
      case "missing":
        return;
      case "text":
        this.#entries.set(path, answer);
        return;
      case "denied":
      case "unreadable":
        this.#entries.set(path, { kind: answer.kind });
        return;
      default:
        answer satisfies never;
    }
  }
}
