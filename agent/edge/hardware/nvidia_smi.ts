/**
 * Runs nvidia-smi, one call at a time, each under a deadline. A wedged driver leaves it in a state
 * that no signal ends, and a second one would only join it: a call that passes its deadline is
 * abandoned without waiting for its end, and until it has ended no other is started.
 */

import { reasonOf } from "../reason_of.ts";

/** What came of a call. */
export type CallResult =
  | {
    readonly kind: "finished";
    readonly code: number;
    readonly stdout: string;
    readonly stderr: string;
  }
  /** The call passed its deadline and was abandoned. */
  | { readonly kind: "hung"; readonly call: string; readonly deadlineMs: number }
  /** Not started, because `call`, an earlier one, still hangs. */
  | { readonly kind: "blocked"; readonly call: string }
  | {
    readonly kind: "not_started";
    readonly why: "missing" | "denied" | "failed";
    readonly message: string;
  };

/** Most bytes kept of a call's stdout and of its stderr; the largest honest answer is under 200 KB. */
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

/** Something that answers as nvidia-smi does. */
export interface NvidiaTool {
  readonly path: string;
  /**
   * One call. The caller waits for its result before the next. Rejects only when `signal` aborts.
   */
  run(args: readonly string[], deadlineMs: number, signal: AbortSignal): Promise<CallResult>;
  /** Resolves when no abandoned call is left. May never do so. */
  idle(): Promise<void>;
}

export class NvidiaSmi implements NvidiaTool {
  readonly #path: string;
  #abandoned:
    | { readonly call: string; readonly child: Deno.ChildProcess; readonly ended: Promise<void> }
    | undefined;

  /** `path` must be one that the agent's permission set lets it run. */
  constructor(path: string) {
    this.#path = path;
  }

  get path(): string {
    return this.#path;
  }

  /** Resolves when no abandoned call is left. May never do so. */
  async idle(): Promise<void> {
    this.#abandoned?.child.ref();
    await this.#abandoned?.ended;
  }

  /**
   * Runs one call. The caller waits for one call's result before it asks for the next. Rejects only
   * when `signal` aborts, and then kills the child.
   */
  async run(
    args: readonly string[],
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<CallResult> {
    signal.throwIfAborted();
    if (this.#abandoned !== undefined) return { kind: "blocked", call: this.#abandoned.call };
    const started = this.#spawn(args);
    if ("kind" in started) return started;
    const call = args.join(" ");
    using end = new Deadline(deadlineMs, signal);
    const stdout = new Capture(started.stdout);
    const stderr = new Capture(started.stderr);
    const finished = Promise.all([stdout.text, stderr.text, started.status]);
    const first = await Promise.race([finished, end.reached]);
    if (typeof first !== "string") {
      const [out, err, status] = first;
      return { kind: "finished", code: status.code, stdout: out, stderr: err };
    }
    this.#abandon(call, started, [stdout, stderr]);
    if (first === "aborted") throw signal.reason;
    return { kind: "hung", call, deadlineMs };
  }

  #spawn(args: readonly string[]): Deno.ChildProcess | CallResult {
    try {
      return new Deno.Command(this.#path, {
        args: [...args],
        // Its own environment: nothing of the agent's, and numbers and sentences in English.
        clearEnv: true,
        env: { LC_ALL: "C", PATH: "/usr/bin:/bin" },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
    } catch (error) {
      const denied = error instanceof Deno.errors.NotCapable ||
        error instanceof Deno.errors.PermissionDenied;
      const missing = error instanceof Deno.errors.NotFound;
      return {
        kind: "not_started",
        why: denied ? "denied" : missing ? "missing" : "failed",
        message: reasonOf(error),
      };
    }
  }

  #abandon(call: string, child: Deno.ChildProcess, captures: readonly Capture[]): void {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended in this moment; its status settles below all the same.
    }
    child.unref(); // the agent's own end need not wait for it
    const ended = Promise.all([child.status, ...captures.map((each) => each.stop())]).then(() => {
      this.#abandoned = undefined;
    });
    this.#abandoned = { call, child, ended };
  }
}

/** Settles with `late` after a time or with `aborted` when the signal does, whichever is first. */
class Deadline implements Disposable {
  readonly reached: Promise<"late" | "aborted">;
  readonly #dispose: () => void;

  constructor(ms: number, signal: AbortSignal) {
    const { promise, resolve } = Promise.withResolvers<"late" | "aborted">();
    const timer = setTimeout(() => resolve("late"), ms);
    const abort = (): void => resolve("aborted");
    signal.addEventListener("abort", abort, { once: true });
    this.reached = promise;
    this.#dispose = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    };
  }

  [Symbol.dispose](): void {
    this.#dispose();
  }
}

/** Reads a stream to its end, keeping a bounded part; can be stopped while the writer lives on. */
class Capture {
  readonly text: Promise<string>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.#reader = stream.getReader();
    this.text = this.#read();
  }

  async stop(): Promise<void> {
    await this.#reader.cancel();
    await this.text;
  }

  async #read(): Promise<string> {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return await new Blob(chunks).text();
      // What is past the limit is read and dropped, so that the writer is not stuck on a full pipe.
      if (size < OUTPUT_BYTES_MAX) chunks.push(value);
      size += value.length;
    }
  }
}
