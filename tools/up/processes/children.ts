/**
 * The programs of one `up`, each a process of its own. One that ends by itself is started again,
 * as systemd would; their logs go to files.
 */
import { delay } from "@heddle/common/task";

/** How to start one program. */
export interface ProgramSpec {
  /** For messages: "control", "router", "agent gpu-1". */
  readonly label: string;
  /** One of the launchers in bin/. */
  readonly launcher: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Appended to by the program itself, so that its log survives `up`. */
  readonly logFile: string;
}

/** When to start a program again, and when not to; in milliseconds. */
export interface RestartTiming {
  /** Before the first new start; doubles with each short life up to `delayMax`. */
  readonly delay: number;
  readonly delayMax: number;
  /** A life shorter than that counts as short. */
  readonly shortLife: number;
}
const RESTART_TIMING: RestartTiming = { delay: 1_000, delayMax: 15_000, shortLife: 5_000 };

/**
 * A program that never had a long life cannot work: after so many short ones nobody tries again.
 * One that did work is started again for ever: giving up would stop all that still serves.
 */
const SHORT_LIVES_MAX = 3;
/** A program that has not ended after SIGTERM by then gets SIGKILL. */
const STOP_TIMEOUT_MS = 15_000;

export class Child {
  readonly spec: ProgramSpec;
  #process: Deno.ChildProcess | undefined;
  readonly #timing: RestartTiming;
  #stopping = new AbortController();
  #ended: Promise<void>;
  /** Resolves with a message when the program cannot be kept running. */
  readonly gaveUp: Promise<string>;

  constructor(spec: ProgramSpec, say: (line: string) => void, timing = RESTART_TIMING) {
    this.spec = spec;
    this.#timing = timing;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.gaveUp = promise;
    this.#ended = this.#keepRunning(say, resolve);
  }

  /** Of the running process; undefined between two. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** SIGTERM, then SIGKILL; resolves when it is gone. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    signal(this.#process, "SIGTERM");
    const timer = setTimeout(() => signal(this.#process, "SIGKILL"), STOP_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  async #keepRunning(
    say: (line: string) => void,
    giveUp: (message: string) => void,
  ): Promise<void> {
    let shortLives = 0;
    let worked = false;
    while (!this.#stopping.signal.aborted) {
      const startedAt = performance.now();
      const status = await this.#runOnce();
      if (this.#stopping.signal.aborted) return;
      const short = performance.now() - startedAt < this.#timing.shortLife;
      shortLives = short ? shortLives + 1 : 0;
      worked ||= !short;
      const how = status.signal === null ? `with code ${status.code}` : `by ${status.signal}`;
      if (!worked && shortLives >= SHORT_LIVES_MAX) {
        return giveUp(
          `${this.spec.label} does not stay up: it ended ${how}, saying last: ` +
            `${await lastLine(this.spec.logFile)}. All of it is in ${this.spec.logFile}`,
        );
      }
      say(`${this.spec.label} ended ${how}; starting it again`);
      const { delay: first, delayMax } = this.#timing;
      const wait = Math.min(delayMax, first * 2 ** Math.max(0, shortLives - 1));
      await delay(wait, this.#stopping.signal);
    }
  }

  async #runOnce(): Promise<Deno.CommandStatus> {
    // Detached, so that Ctrl-C reaches `up` alone and the order of stopping is ours.
    this.#process = new Deno.Command(this.spec.launcher, {
      args: [...this.spec.args],
      env: { ...this.spec.env, HEDDLE_LOG_FILE: this.spec.logFile },
      stdin: "null",
      stdout: "null",
      stderr: "null",
      detached: true,
    }).spawn();
    if (this.#stopping.signal.aborted) signal(this.#process, "SIGTERM");
    const status = await this.#process.status;
    this.#process = undefined;
    return status;
  }
}

async function lastLine(file: string): Promise<string> {
  const text = await Deno.readTextFile(file).catch(() => "");
  return text.trimEnd().split("\n").at(-1) || "nothing";
}

function signal(process: Deno.ChildProcess | undefined, name: Deno.Signal): void {
  try {
    process?.kill(name);
  } catch {
    // It ended between our look and our signal, which is what was wanted.
  }
}
