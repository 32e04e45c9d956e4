/**
 * The launcher for machines without systemd: each process is led by a heddle-shim of its own, and
 * found again by the nonce among the shim's arguments. It cannot promise that a process is killed
 * whole: what leaves its group and wipes its environment is out of reach.
 */
import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { HeddleError } from "@heddle/proto/error";
import { decodeExitFile } from "../../core/exit_file.ts";
import { type ProcessUsage, readShimUsage } from "../../core/host/process_usage.ts";
import type { ExitRecord, ProcessRef } from "../../core/shard/shard.ts";
import { shellEnv } from "../../core/shell_env.ts";
import type { Launcher, LaunchRequest, LiveMember, LiveProcess, Signal } from "./launcher.ts";
import { callShim, cannotRun, NOT_OURS, readMembers } from "./shim.ts";

const log = logger("agent", "launcher");

/** Between looks for the exit record of a process that an earlier agent started. */
const EXIT_POLL_MS = 250;
/** A process that is killed together with its shim leaves no record; looking takes some 20 ms. */
const ALIVE_POLL_MS = 3_000;
/** A shim says that it runs within milliseconds, also on a busy machine. */
const START_MS_MAX = 15_000;

export interface ProcessLauncherOptions {
  /** Absolute path of heddle-shim. */
  readonly shim: string;
  /** The agent's state directory: only what runs below it is ours. */
  readonly stateDirectory: string;
}

interface Child {
  readonly child: Deno.ChildProcess;
  readonly ended: AbortController;
  readonly status: Promise<void>;
}

export class ProcessLauncher implements Launcher {
  readonly #shim: string;
  readonly #stateDirectory: string;
  /** Children of this very agent; `ended` spares their watchers the wait for the next look. */
  readonly #children = new Map<string, Child>();
  /** The look that is under way, and the one after it. */
  #looking: Promise<readonly LiveProcess[]> | undefined;
  #next: Promise<readonly LiveProcess[]> | undefined;

  constructor(options: ProcessLauncherOptions) {
    this.#shim = options.shim;
    this.#stateDirectory = options.stateDirectory;
  }

  async start(request: LaunchRequest): Promise<ProcessRef> {
    const { directory, handle, name } = request;
    // Every program must be an absolute path: which one runs must not hang on a search.
    if (!request.argv[0]?.startsWith("/")) {
      throw new HeddleError(
        "invalid_input",
        `Cannot start ${name}: "${request.argv[0] ?? ""}" is no absolute path`,
      );
    }
    await writeFileAtomic(join(directory, "env"), shellEnv(request.env));
    const child = this.#spawn(["run", handle, directory, "--", ...request.argv]);
    const ended = new AbortController();
    const status = child.status.then(() => ended.abort());
    const line = await firstLine(child);
    const [, pid, started, main] = /^(\d+) (\S+) (\d+)$/.exec(line) ?? [];
    if (pid === undefined || started === undefined) {
      throw new HeddleError(
        "system",
        `Cannot start ${name}: ${line || "heddle-shim says nothing"}`,
      );
    }
    this.#children.set(handle, { child, ended, status });
    void status.then(() => this.#children.delete(handle));
    return { name, handle, pid: Number(pid), started, mainPid: Number(main) };
  }

  // Many watchers ask at once, and one look answers them all; but never one that had begun before
  // they asked: it could miss what was started since, and that would be taken for dead.
  list(): Promise<readonly LiveProcess[]> {
    if (this.#looking === undefined) {
      this.#looking = this.#find().finally(() => this.#looking = undefined);
      return this.#looking;
    }
    this.#next ??= this.#looking.then(() => {}, () => {}).then(() => {
      this.#next = undefined;
      return this.list();
    });
    return this.#next;
  }

  async signal(process: ProcessRef, signal: Signal): Promise<"sent" | "gone"> {
    const scope = signal === "SIGTERM" ? "leader" : "group";
    const { code } = await callShim(this.#shim, [
      "signal",
      process.handle,
      String(process.pid),
      signal,
      scope,
    ]);
    return code === NOT_OURS ? "gone" : "sent";
  }

  async members(process: ProcessRef): Promise<readonly number[]> {
    return (await this.describe(process)).map(({ pid }) => pid);
  }

  async describe(process: ProcessRef): Promise<readonly LiveMember[]> {
    const { lines } = await callShim(this.#shim, [
      "members",
      process.handle,
      String(process.pid),
    ]);
    return readMembers(lines);
  }

  async exit(
    process: ProcessRef,
    directory: string,
    signal: AbortSignal,
  ): Promise<ExitRecord | undefined> {
    const file = join(directory, "exit");
    const ended = this.#children.get(process.handle)?.ended.signal;
    const wake = ended === undefined ? signal : AbortSignal.any([signal, ended]);
    let nextLookAt = 0;
    for (let gone = false;;) {
      // Read once more after the process was seen to be gone: what it wrote, it wrote before.
      const text = await this.#readExit(file);
      signal.throwIfAborted();
      if (text !== undefined) return decodeExitFile(text);
      if (gone) return undefined;
      if (ended?.aborted === true) {
        gone = true;
      } else if (performance.now() >= nextLookAt) {
        gone = await this.#isGone(process);
        nextLookAt = performance.now() + ALIVE_POLL_MS;
      } else {
        await delay(EXIT_POLL_MS, wake);
      }
    }
  }

  async usage(processes: readonly ProcessRef[]): Promise<ReadonlyMap<string, ProcessUsage>> {
    if (processes.length === 0) return new Map();
    const all = readShimUsage((await callShim(this.#shim, ["usage"])).lines);
    return new Map([...all].filter(([handle]) => processes.some((each) => each.handle === handle)));
  }

  logFile(directory: string): string {
    return join(directory, "log");
  }

  /** Resolves when every process that this launcher itself started has ended. */
  async childrenEnded(): Promise<void> {
    await Promise.all([...this.#children.values()].map(({ child, status }) => {
      // Whoever waits for it keeps this process alive for it.
      child.ref();
      return status;
    }));
  }

  async #find(): Promise<readonly LiveProcess[]> {
    const { lines } = await callShim(this.#shim, ["find", this.#stateDirectory]);
    return await Promise.all(lines.map(async (line) => {
      const [handle = "", pid = "", started = "", , role, ...rest] = line.split(" ");
      const directory = rest.join(" ");
      const main = Number(await readTextIfExists(join(directory, "engine")) ?? NaN);
      return {
        handle,
        pid: Number(pid),
        started,
        ...(Number.isInteger(main) ? { mainPid: main } : {}),
        directory,
        whole: role === "shim",
      };
    }));
  }

  async #readExit(file: string): Promise<string | undefined> {
    try {
      return await readTextIfExists(file);
    } catch (error) {
      log.warning("Cannot read how a process ended", { file, error });
      return undefined;
    }
  }

  async #isGone(process: ProcessRef): Promise<boolean> {
    try {
      const live = await this.list();
      return !live.some(({ handle, whole }) => whole && handle === process.handle);
    } catch (error) {
      // Not knowing is not knowing it to be gone.
      log.warning("Cannot look for processes", { error });
      return false;
    }
  }

  #spawn(args: readonly string[]): Deno.ChildProcess {
    try {
      const child = new Deno.Command(this.#shim, {
        args: [...args],
        clearEnv: true,
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
        // A session and group of its own: it outlives the agent, and can be ended whole.
        detached: true,
      }).spawn();
      child.unref();
      return child;
    } catch (error) {
      throw cannotRun(this.#shim, error);
    }
  }
}

/** What the shim says first: that it runs, or why it does not. */
async function firstLine(child: Deno.ChildProcess): Promise<string> {
  const deadline = AbortSignal.timeout(START_MS_MAX);
  const [said, complained] = await Promise.all([
    readLine(child.stdout, deadline),
    readLine(child.stderr, deadline),
  ]);
  return said || complained;
}

// The shim closes both once the process runs, so this ends although the process goes on.
async function readLine(stream: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<string> {
  const reader = stream.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", cancel);
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (!text.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    await reader.cancel();
    return text.split("\n")[0] ?? "";
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}
