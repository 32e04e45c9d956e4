/**
 * Runs of a program that works for the agent: what fetches weights, what installs engines. Each is a process of its own that a launcher starts, with a folder
 * in the agent's state; what it says is read from its log. An agent that starts again finds those that
 * still run, and goes on listening.
 */
import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { delay, spawnTask } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { ExitRecord, ProcessRef } from "../core/shard/shard.ts";
import type { Launcher } from "../edge/launcher/launcher.ts";

const log = logger("agent", "programs");

/** Between looks at what a run says. */
const LOOK_MS = 1_000;
/** A line of a report, and what a crash says, are shorter. */
const TAIL_BYTES = 16_384;
const REQUEST_FILE = "request.json";

/** How its program is spoken to. */
export interface Language<Request, Report extends { readonly kind: string }> {
  /** Variable in which it finds its request. */
  readonly variable: string;
  readonly decode: (text: string) => Request;
  /** The last report in what it said; undefined when there is none. */
  readonly lastReport: (said: string) => Report | undefined;
  /** False for a report that others follow. */
  readonly isLast: (report: Report) => boolean;
  /** What is reported for a program that ended without a last word. */
  readonly failed: (message: string) => Report;
}

export interface Run<Request, Report> {
  readonly request: Request;
  /** Called with every report but the last. */
  onReport: (report: Report) => void;
  /** Its last report. Never rejects. */
  readonly ended: Promise<Report>;
  /** Asks it to end; what it has is kept. */
  stop(): Promise<void>;
}

export interface RunsOptions<Request, Report extends { readonly kind: string }> {
  readonly language: Language<Request, Report>;
  readonly launcher: Launcher;
  /** Folder of the runs' own folders. */
  readonly folder: string;
  /** Absolute path of the program. */
  readonly program: string;
  /** The environment of a run of that handle. */
  readonly environmentOf: (
    handle: string,
    request: Readonly<Record<string, unknown>>,
  ) => Record<string, string>;
  /** What its request has besides, which depends on the handle too. */
  readonly settingsOf: (handle: string) => Readonly<Record<string, unknown>>;
  /** A name that no run ever had. */
  readonly makeHandle: (name: string) => string;
}

export class ProgramRuns<Request, Report extends { readonly kind: string }> {
  readonly #options: RunsOptions<Request, Report>;
  readonly #closing = new AbortController();

  constructor(options: RunsOptions<Request, Report>) {
    this.#options = options;
  }

  /** Starts a run. Throws `system` when it cannot be started. */
  async start(
    name: string,
    request: Readonly<Record<string, unknown>>,
  ): Promise<Run<Request, Report>> {
    const { launcher, folder, program, environmentOf, settingsOf, makeHandle, language } =
      this.#options;
    const handle = makeHandle(name);
    const directory = join(folder, handle);
    await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ ...request, ...settingsOf(handle) });
    await writeFileAtomic(join(directory, REQUEST_FILE), text);
    const env = { ...environmentOf(handle, request), [language.variable]: text };
    const process = await launcher.start({
      name: "run",
      handle,
      directory,
      argv: [program],
      env,
    });
    return this.#follow(process, directory, language.decode(text));
  }

  /** Those that an earlier agent started and that still run. Removes the folders of the others. */
  async adopt(): Promise<readonly Run<Request, Report>[]> {
    const { launcher, folder, language } = this.#options;
    const live = await launcher.list();
    const runs: Run<Request, Report>[] = [];
    const kept = new Set<string>();
    for (const { handle, pid, started, mainPid, directory } of live) {
      const text = await readTextIfExists(join(directory, REQUEST_FILE));
      if (text === undefined) continue;
      kept.add(directory);
      const process = { name: "run", handle, pid, started, ...(mainPid ? { mainPid } : {}) };
      runs.push(this.#follow(process, directory, language.decode(text)));
    }
    for (const name of await namesIn(folder)) {
      const directory = join(folder, name);
      if (!kept.has(directory)) await Deno.remove(directory, { recursive: true });
    }
    return runs;
  }

  /** Listens to none of them any more; they go on. */
  close(): void {
    this.#closing.abort();
  }

  #follow(process: ProcessRef, directory: string, request: Request): Run<Request, Report> {
    const { launcher, language } = this.#options;
    const { signal } = this.#closing;
    const ended = Promise.withResolvers<Report>();
    const run: Run<Request, Report> = {
      request,
      onReport: () => {},
      ended: ended.promise,
      stop: async () => void await launcher.signal(process, "SIGTERM"),
    };
    const done = new AbortController();
    const stopped = AbortSignal.any([signal, done.signal]);
    spawnTask("report of a run", async () => {
      while (!stopped.aborted) {
        await delay(LOOK_MS, stopped);
        const report = language.lastReport(await this.#tail(directory));
        if (report !== undefined && !stopped.aborted) run.onReport(report);
      }
    }, stopped);
    spawnTask("run", async () => {
      let exit: ExitRecord | undefined;
      try {
        exit = await launcher.exit(process, directory, signal);
      } finally {
        done.abort();
      }
      const said = await this.#tail(directory);
      const last = language.lastReport(said);
      ended.resolve(
        last !== undefined && language.isLast(last) ? last : language.failed(endWords(said, exit)),
      );
      await Deno.remove(directory, { recursive: true }).catch((error: unknown) =>
        log.warning("Cannot remove the folder of a run", { directory, why: errorText(error) })
      );
    }, signal);
    return run;
  }

  async #tail(directory: string): Promise<string> {
    try {
      using file = await Deno.open(this.#options.launcher.logFile(directory));
      const { size } = await file.stat();
      await file.seek(Math.max(0, size - TAIL_BYTES), Deno.SeekMode.Start);
      const bytes = new Uint8Array(TAIL_BYTES);
      const count = await file.read(bytes) ?? 0;
      return new TextDecoder().decode(bytes.subarray(0, count));
    } catch {
      return "";
    }
  }
}

function endWords(said: string, exit: ExitRecord | undefined): string {
  const how = exit?.signal ? `by ${exit.signal}` : `with code ${exit?.code ?? "unknown"}`;
  const memory = exit?.outOfMemory === true ? ", because it was out of memory" : "";
  const words = said.split("\n").filter((line) => line !== "" && !line.startsWith("{")).slice(-3)
    .join(" | ");
  return `the program ended ${how}${memory}${words === "" ? "" : `: ${words}`}`;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  } catch {
    return [];
  }
}
