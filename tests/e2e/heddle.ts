/**
 * A whole Heddle for a test: `up` with ports and a state directory of its own, ended with Ctrl-C.
 * What is observed is what a user could observe: HTTP, ctl's JSON, and pids.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findByArgument } from "../../tools/up/processes/find_process.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** From start to ready, on a slow and busy machine. */
const READY_MS_MAX = 90_000;
/** For a condition that a test waits for. */
export const EVENTUALLY_MS_MAX = 60_000;
const POLL_MS = 100;
/** Ports that one `up` may use, from its first. */
const PORT_SPAN = 1_500;
const PORT_FIRST = 21_000;
const PORT_LAST = 31_000;

export interface Shard {
  readonly shard_id: string;
  readonly node: string;
  readonly rank: number;
  readonly state: string;
  readonly gpus: readonly number[];
  readonly hcas: readonly { readonly name: string; readonly port: number }[];
  readonly pid: number | null;
}

export interface Replica {
  readonly replica_id: string;
  readonly model: string;
  readonly profile: string;
  readonly state: string;
  readonly reason: string;
  readonly address: string;
  readonly fabric: string;
  readonly shards: readonly Shard[];
}

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. */
export async function runCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const output = await new Deno.Command(command, {
    args: [...args],
    env: { ...env },
    stdin: "null",
  })
    .output();
  const decoder = new TextDecoder();
  return {
    code: output.code,
    stdout: decoder.decode(output.stdout),
    stderr: decoder.decode(output.stderr),
  };
}

/** Runs `up` to its end; for starts that are expected to fail or to detach. */
export function runUp(args: readonly string[]): Promise<Finished> {
  return runCommand(Deno.execPath(), [...UP, ...args]);
}

export function runDown(args: readonly string[]): Promise<Finished> {
  return runCommand(Deno.execPath(), [
    "run",
    "-P=up",
    "--quiet",
    "--no-prompt",
    join(ROOT, "tools/up/down.ts"),
    ...args,
  ]);
}

const UP = ["run", "-P=up", "--quiet", "--no-prompt", join(ROOT, "tools/up/main.ts")];

/** A state directory that is removed with its user, and a range of ports nobody else has. */
export async function reserve(): Promise<{ state: string; port: number } & AsyncDisposable> {
  const state = await Deno.makeTempDir({ prefix: "heddle-e2e-" });
  return {
    state,
    port: freePortRange(),
    [Symbol.asyncDispose]: () => Deno.remove(state, { recursive: true }),
  };
}

// Tests run one file at a time, but other users of the machine exist: look before choosing.
function freePortRange(): number {
  const steps = Math.floor((PORT_LAST - PORT_FIRST) / PORT_SPAN);
  const offset = Deno.pid % steps;
  for (let step = 0; step < steps; step++) {
    const first = PORT_FIRST + ((offset + step) % steps) * PORT_SPAN;
    if ([0, 1, 2, 3, 4, 5, 10, 100].every((more) => isFree(first + more))) return first;
  }
  throw new Error(`No free range of ports between ${PORT_FIRST} and ${PORT_LAST}`);
}

function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch {
    return false;
  }
}

/** Waits until `look` gives a value; fails with what `describe` says after a minute. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined>,
  limitMs = EVENTUALLY_MS_MAX,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((tick) => setTimeout(tick, POLL_MS));
  }
}

/** True while a process with that pid exists and is not a zombie. */
export async function isAlive(pid: number): Promise<boolean> {
  const { code, stdout } = await runCommand("/bin/sh", [
    "-c",
    `sed -n 's/^State:[[:space:]]*//p' /proc/${pid}/status 2>/dev/null`,
  ]);
  return code === 0 && stdout !== "" && !stdout.startsWith("Z");
}

/** A running `up`. */
export class Heddle implements AsyncDisposable {
  readonly state: string;
  readonly port: number;
  readonly #process: Deno.ChildProcess;
  readonly #output: Promise<void>;
  #text = "";

  private constructor(process: Deno.ChildProcess, place: { state: string; port: number }) {
    this.#process = process;
    this.state = place.state;
    this.port = place.port;
    this.#output = this.#collect();
  }

  /** Starts `up` and waits until it says that it is ready; real engines take longer than most. */
  static async start(
    place: { state: string; port: number },
    args: readonly string[] = [],
    { readyMs = READY_MS_MAX }: { readonly readyMs?: number } = {},
  ): Promise<Heddle> {
    const process = new Deno.Command(Deno.execPath(), {
      args: [...UP, "--ports-from", String(place.port), "--state", place.state, ...args],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const heddle = new Heddle(process, place);
    try {
      await eventually("up says that it is up", async () => {
        if (heddle.output.includes("Heddle is up")) return true;
        const ended = await Promise.race([process.status, Promise.resolve(undefined)]);
        if (ended !== undefined) throw new Error(`up ended early:\n${heddle.output}`);
        return undefined;
      }, readyMs);
    } catch (error) {
      await heddle.stop();
      throw new Error(`${error}\n${heddle.output}`, { cause: error });
    }
    return heddle;
  }

  /** All that `up` has printed so far. */
  get output(): string {
    return this.#text;
  }

  get openaiUrl(): string {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** Ends it as Ctrl-C does and waits. Returns the exit code. */
  async stop(): Promise<number> {
    try {
      this.#process.kill("SIGINT");
    } catch {
      // It has ended already; its status tells how.
    }
    const status = await this.#process.status;
    await this.#output;
    return status.code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Runs ctl against it. */
  ctl(...args: string[]): Promise<Finished> {
    return runCommand(join(ROOT, "bin/heddle"), args, {
      HEDDLE_CTL_CONFIG: join(this.state, "ctl/config.yaml"),
      HEDDLE_DENO: Deno.execPath(),
    });
  }

  async replicas(): Promise<Replica[]> {
    const { code, stdout, stderr } = await this.ctl("replicas", "--json");
    if (code !== 0) throw new Error(`ctl replicas failed: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** Pids of a program: "control", "router" or "agents/NAME". */
  pids(program: string): Promise<number[]> {
    const name = program.startsWith("agents/") ? "agent" : program;
    return findByArgument(join(this.state, program, `${name}.yaml`));
  }

  /** `kill -9`; `up` starts it again. */
  async killProgram(program: string): Promise<void> {
    for (const pid of await this.pids(program)) Deno.kill(pid, "SIGKILL");
  }

  async #collect(): Promise<void> {
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      this.#text += text;
    }
  }
}
