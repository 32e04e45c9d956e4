/** Counts what has come, and tells it as lines of the report. */
import type { FetchReport, ReportOf } from "../../core/weights/documents.ts";
import { rateOf, type Sample, secondsFor, withSample } from "../../core/weights/meter.ts";

const TELL_MS = 1_000;

type Phase = ReportOf<"progress">["phase"];

export class Progress implements Disposable {
  readonly #tell: (report: FetchReport) => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #phase: Phase = "listing";
  #version = "";
  #done = 0;
  #total = 0;
  #files = 0;
  #filesDone = 0;
  #received = 0;
  #checking = 0;
  #note = "";
  #noteUntil = 0;
  #samples: readonly Sample[] = [];

  constructor(tell: (report: FetchReport) => void) {
    this.#tell = tell;
  }

  /** Bytes that came over the network. */
  get receivedBytes(): number {
    return this.#received;
  }

  /** Tells now, and from now on each second. */
  start(): void {
    this.#timer = setInterval(() => this.#say(), TELL_MS);
    this.#say();
  }

  phase(phase: Phase, note = ""): void {
    this.#phase = phase;
    this.#note = note;
    this.#noteUntil = Infinity;
    this.#say();
  }

  begins(of: { readonly version: string; readonly files: number; readonly bytes: number }): void {
    this.#version = of.version;
    this.#files = of.files;
    this.#total = of.bytes;
    this.phase("fetching");
  }

  /** So many bytes were there already. */
  found(bytes: number): void {
    this.#done += bytes;
    this.#samples = [];
  }

  received(bytes: number): void {
    this.#done += bytes;
    this.#received += bytes;
    if (this.#noteUntil !== Infinity) this.#noteUntil = 0;
  }

  /** So many bytes have to come again. */
  forgot(bytes: number): void {
    this.#done -= bytes;
  }

  fileDone(): void {
    this.#filesDone++;
  }

  verifying(begins: boolean): void {
    this.#checking += begins ? 1 : -1;
  }

  /** So many bytes were read back; nothing is told of it but that it is done. */
  checked(_bytes: number): void {}

  waits(why: string, waitMs: number): void {
    this.#note = why;
    this.#noteUntil = performance.now() + waitMs;
    this.#say();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #say(): void {
    const now = performance.now();
    this.#samples = withSample(this.#samples, { at: now, bytes: this.#done });
    const rate = rateOf(this.#samples);
    const left = secondsFor(this.#total - this.#done, rate);
    const waits = this.#noteUntil > now;
    const fetching = this.#phase === "fetching";
    const phase = !fetching
      ? this.#phase
      : this.#checking > 0 && this.#done >= this.#total
      ? "verifying"
      : waits && rate === 0
      ? "waiting_to_retry"
      : "fetching";
    this.#tell({
      kind: "progress",
      phase,
      version: this.#version,
      done_bytes: Math.max(0, this.#done),
      total_bytes: Math.max(this.#total, this.#done),
      files: this.#files,
      files_done: this.#filesDone,
      note: waits ? this.#note : "",
      ...(fetching && rate !== undefined ? { bytes_per_second: rate } : {}),
      ...(fetching && left !== undefined ? { seconds_left: left } : {}),
    });
  }
}
