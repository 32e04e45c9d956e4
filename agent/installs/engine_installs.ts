/**
 * Converges on the engines that control wants this node to have: installs what is missing, one after
 * the other, each in a run of its own; what is there goes to those who see that it runs. What control
 * said last is on disk, so that a node without control goes on with it.
 */
import { join } from "node:path";
import { z } from "zod";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { EngineWanted } from "@heddle/proto/gen/engines";
import type { Plain } from "@heddle/proto/plain";
import {
  engineFolder,
  type EnginesInUse,
  type InstallFailure,
  nextInstall,
  removable,
  retryAt,
  unusedSince,
  wantedKey,
} from "../core/install/converge.ts";
import {
  decodeInstallRequest,
  decodeMark,
  ENGINE_MARK,
  type InstallReport,
  type InstallRequest,
  lastInstallReport,
} from "../core/install/install_documents.ts";
import type { Language, ProgramRuns, Run } from "../programs/program_runs.ts";

const log = logger("agent", "engines");

/** Between looks whether something is to be done. */
const LOOK_MS = 5_000;

const wantedSchema = z.object({
  name: z.string(),
  version: z.string(),
  releases: z.string(),
  index: z.string(),
  packages: z.array(z.string()),
});
const documentSchema = z.object({ version: z.literal(1), engines: z.array(wantedSchema) });

export type InstallRun = Run<InstallRequest, InstallReport>;

export const INSTALL: Language<InstallRequest, InstallReport> = {
  variable: "HEDDLE_INSTALL_REQUEST",
  decode: decodeInstallRequest,
  lastReport: lastInstallReport,
  isLast: ({ kind }) => kind !== "progress",
  failed: (message) => ({ kind: "failed", reason: "system_error", message }),
};

/** An engine that lies in the folder, marked as one that was seen to run. */
export interface InstalledHere {
  readonly name: string;
  readonly version: string;
  readonly path: string;
}

export interface InstallHere {
  readonly name: string;
  readonly version: string;
  readonly state: "waiting" | "installing" | "installed" | "failed";
  readonly progress: string;
  readonly reason: string;
  readonly message: string;
  readonly retryInMs: number | undefined;
  readonly wanted: boolean;
}

export interface EngineInstallsOptions {
  readonly runs: ProgramRuns<InstallRequest, InstallReport>;
  /** Folder of the engines. */
  readonly folder: string;
  /** File with what control said last. */
  readonly file: string;
  /** What every request has besides. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** What a request to install has besides, of what was found on this machine. */
  readonly machine: () => Promise<Pick<InstallRequest, "cuda" | "driver">>;
  readonly inUse: () => EnginesInUse;
  readonly now: () => number;
  /** Something was installed, or failed, or is on its way. */
  readonly onChange: () => void;
}

export class EngineInstalls {
  readonly #options: EngineInstallsOptions;
  readonly #failures = new Map<string, InstallFailure>();
  /** Undefined: control has said nothing yet. */
  #wanted: readonly Plain<EngineWanted>[] | undefined;
  #installed: readonly InstalledHere[] = [];
  #current: { readonly folder: string; progress: string } | undefined;
  /** Versions that nobody wants or uses, by folder, and since when. */
  #unused: ReadonlyMap<string, number> = new Map();
  /** Folder of the one that is being removed. */
  #removing: string | undefined;
  #wake = new AbortController();

  constructor(options: EngineInstallsOptions) {
    this.#options = options;
  }

  /** What may be started; one that is about to go is not there any more. */
  get installed(): readonly InstalledHere[] {
    return this.#installed.filter((each) => engineFolder(each) !== this.#removing);
  }

  /** Reads what an earlier agent was told, and what it installed. */
  async open(): Promise<void> {
    const text = await readTextIfExists(this.#options.file);
    const parsed = text === undefined ? undefined : documentSchema.safeParse(json(text)).data;
    this.#wanted = parsed?.engines;
    await this.#look();
  }

  /** Control's word; undefined: it has none, and what it said before stays. */
  async tell(wanted: readonly Plain<EngineWanted>[] | undefined): Promise<void> {
    if (wanted === undefined) return;
    const engines = wanted.map(({ name, version, releases, index, packages }) => ({
      name,
      version,
      releases,
      index,
      packages: [...packages],
    }));
    this.#wanted = engines;
    const document = { version: 1, engines };
    await writeFileAtomic(this.#options.file, `${JSON.stringify(document, null, 1)}\n`);
    this.#wake.abort();
  }

  /** Installs what is missing until `signal` aborts; a run that is under way then goes on. */
  async run(signal: AbortSignal): Promise<void> {
    for (const run of await this.#options.runs.adopt()) await this.#follow(run, signal);
    while (!signal.aborted) {
      await this.#look();
      const next = nextInstall(this.#wanted ?? [], {
        installed: new Set(this.#installed.map(engineFolder)),
        failures: this.#failures,
      }, this.#options.now());
      if (next !== undefined) await this.#install(next, signal);
      else await this.#removeUnused(signal);
      await delay(LOOK_MS, AbortSignal.any([signal, this.#wake.signal]));
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
    }
    this.#options.runs.close();
  }

  /** Every engine that is wanted or there. */
  list(): readonly InstallHere[] {
    const wanted = this.#wanted ?? [];
    const there = this.#installed.map((each) => ({
      ...NOTHING,
      name: each.name,
      version: each.version,
      state: "installed" as const,
      wanted: wanted.some((one) => engineFolder(one) === engineFolder(each)),
    }));
    const missing = wanted.filter((one) =>
      !this.#installed.some((each) => engineFolder(each) === engineFolder(one))
    );
    return [...there, ...missing.map((one) => this.#missing(one))];
  }

  #missing(one: Plain<EngineWanted>): InstallHere {
    const base = { ...NOTHING, name: one.name, version: one.version, wanted: true };
    if (this.#current?.folder === engineFolder(one)) {
      return { ...base, state: "installing", progress: this.#current.progress };
    }
    const failure = this.#failures.get(wantedKey(one));
    if (failure === undefined) return { ...base, state: "waiting" };
    const at = retryAt(failure);
    const { reason, message } = failure;
    return {
      ...base,
      state: "failed",
      reason,
      message,
      retryInMs: at === undefined ? undefined : Math.max(0, at - this.#options.now()),
    };
  }

  async #install(wanted: Plain<EngineWanted>, signal: AbortSignal): Promise<void> {
    const { name: engine, version, releases, index, packages } = wanted;
    log.info("Installing engine", { engine, version });
    const key = wantedKey(wanted);
    let report: InstallReport | undefined;
    try {
      const run = await this.#options.runs.start(engineFolder(wanted), {
        ...this.#options.settings,
        ...await this.#options.machine(),
        engine,
        version,
        releases,
        index,
        packages,
      });
      report = await this.#follow(run, signal);
    } catch (error) {
      report = { kind: "failed", reason: "system_error", message: errorText(error) };
    }
    if (report === undefined) return;
    if (report.kind === "failed") {
      const { reason, message } = report;
      const count = (this.#failures.get(key)?.count ?? 0) + 1;
      this.#failures.set(key, { reason, message, count, at: this.#options.now() });
      log.warning("Cannot install engine", { engine, version, reason, why: message });
    } else {
      this.#failures.delete(key);
      log.info("Installed engine", { engine, version });
    }
    await this.#look();
    this.#options.onChange();
  }

  /** One at a time, as they come. What cannot be removed is tried again after it was unused anew. */
  async #removeUnused(signal: AbortSignal): Promise<void> {
    const { folder, now, inUse, runs, settings, onChange } = this.#options;
    const installed = this.#installed.map((each) => ({
      ...each,
      folder: join(folder, engineFolder(each)),
    }));
    this.#unused = unusedSince(
      { installed, wanted: this.#wanted, inUse: inUse() },
      this.#unused,
      now(),
    );
    const [name] = removable(this.#unused, now());
    const gone = this.#installed.find((each) => engineFolder(each) === name);
    if (name === undefined || gone === undefined) return;
    const { name: engine, version } = gone;
    log.info("Removing engine: nobody wants or uses it", { engine, version });
    this.#removing = name;
    try {
      onChange();
      const request = { ...settings, verb: "remove" as const, engine, version };
      const report = await this.#follow(await runs.start(name, request), signal);
      if (report?.kind === "failed") {
        log.warning("Cannot remove engine", { engine, version, why: report.message });
      }
    } catch (error) {
      log.warning("Cannot remove engine", { engine, version, error });
    } finally {
      this.#removing = undefined;
      this.#unused = new Map([...this.#unused].filter(([each]) => each !== name));
    }
    await this.#look();
    onChange();
  }

  /** Its last report; undefined when this agent ends before the run does. */
  async #follow(run: InstallRun, signal: AbortSignal): Promise<InstallReport | undefined> {
    const { engine, version } = run.request;
    const current = { folder: engineFolder({ name: engine, version }), progress: "" };
    this.#current = current;
    this.#options.onChange();
    run.onReport = (report) => {
      if (report.kind === "progress") current.progress = report.words;
    };
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const ended = () => resolve(undefined);
    signal.addEventListener("abort", ended);
    try {
      return await Promise.race([run.ended, promise]);
    } finally {
      signal.removeEventListener("abort", ended);
      this.#current = undefined;
    }
  }

  async #look(): Promise<void> {
    const found: InstalledHere[] = [];
    try {
      for await (const { name, isDirectory } of Deno.readDir(this.#options.folder)) {
        if (!isDirectory || name.startsWith(".")) continue;
        const folder = join(this.#options.folder, name);
        const mark = decodeMark(await readTextIfExists(join(folder, ENGINE_MARK)) ?? "");
        if (
          mark === undefined || engineFolder({ name: mark.engine, version: mark.version }) !== name
        ) {
          continue;
        }
        const path = join(folder, mark.program);
        found.push({ name: mark.engine, version: mark.version, path });
      }
    } catch {
      // Not there yet: then nothing is installed.
    }
    this.#installed = found.sort((a, b) => a.path < b.path ? -1 : 1);
  }
}

const NOTHING = { progress: "", reason: "", message: "", retryInMs: undefined } as const;

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
