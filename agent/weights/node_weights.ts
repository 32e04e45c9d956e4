/**
 * The weights of a node: what is there, what is on its way, and who waits for it. One fetch serves
 * everybody who asks for the same.
 */
import { join } from "node:path";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { FetchReport, FetchRequestInput, ReportOf } from "../core/weights/documents.ts";
import { isPermanent, type WeightsReason } from "../core/weights/failure.ts";
import { nameOf, ownName, partialName, type Want } from "../core/weights/own_name.ts";
import { findOwn, listOwn, type OwnWeights } from "../edge/fetch/own_weights.ts";
import type { FetchRun, FetchRuns } from "./fetch_language.ts";

const log = logger("agent", "weights");

/** A failure is told for so long, or until it is tried again. */
const FAILURE_MS = 30 * 60_000;
/** Nobody waits longer for a look at a source. */
const INSPECT_MS_MAX = 120_000;

export interface VersionedWant extends Want {
  readonly version: string;
}

export interface Refusal {
  readonly kind: "failed";
  readonly reason: WeightsReason;
  readonly message: string;
  readonly permanent: boolean;
}

export type Ensured = { readonly kind: "ready"; readonly path: string } | Refusal;

/** One source on this node. */
export interface WeightsHere {
  readonly want: VersionedWant;
  readonly state: "fetching" | "ready" | "failed";
  readonly folder: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly doneBytes: number;
  readonly bytesPerSecond: number | undefined;
  readonly secondsLeft: number | undefined;
  readonly reason: string;
  readonly message: string;
}

interface Fetching {
  readonly want: VersionedWant;
  readonly run: Promise<FetchRun>;
  readonly done: Promise<Ensured>;
  report: FetchReport | undefined;
  readonly listeners: Set<(report: FetchReport) => void>;
}

export interface NodeWeightsOptions {
  readonly runs: FetchRuns;
  /** Folder that belongs to Heddle's fetching alone. */
  readonly into: string;
  /** What every request has besides its source. */
  readonly settings: Omit<FetchRequestInput, "verb" | "source" | "into">;
  readonly now: () => number;
  /** Something is there now, or gone, or failed. */
  readonly onChange: () => void;
}

export class NodeWeights {
  readonly #options: NodeWeightsOptions;
  readonly #fetching = new Map<string, Fetching>();
  readonly #failed = new Map<string, { want: VersionedWant; refusal: Refusal; at: number }>();

  constructor(options: NodeWeightsOptions) {
    this.#options = options;
  }

  /** Takes over what an earlier agent started. */
  async adopt(): Promise<void> {
    for (const run of await this.#options.runs.adopt()) {
      const { verb, source, include, exclude, version } = run.request;
      if (verb !== "fetch") continue;
      log.info("A fetch of an earlier agent goes on", { source });
      this.#track({ source, include, exclude, version }, Promise.resolve(run));
    }
  }

  /**
   * Resolves when the weights are there, or cannot be had. `tell` hears how far they are. When
   * `signal` aborts it rejects, and the fetch goes on: somebody will want it.
   */
  async ensure(
    want: VersionedWant,
    tell: (report: FetchReport) => void,
    signal: AbortSignal,
  ): Promise<Ensured> {
    const had = await findOwn(this.#options.into, want, want.version);
    if (had !== undefined) return { kind: "ready", path: this.#pathOf(had) };
    const fetching = this.#fetch(want);
    fetching.listeners.add(tell);
    try {
      return await Promise.race([fetching.done, aborted(signal)]);
    } finally {
      fetching.listeners.delete(tell);
    }
  }

  /** Begins to fetch, where it is not there and not on its way. */
  async prefetch(want: VersionedWant): Promise<"present" | "fetching"> {
    const had = await findOwn(this.#options.into, want, want.version);
    if (had !== undefined) return "present";
    this.#fetch(want);
    return "fetching";
  }

  /** Removes a folder of ours; `used` are sources that shards need. Never rejects. */
  async remove(
    folder: string,
    used: readonly Want[],
  ): Promise<Refusal | ReportOf<"removed">> {
    const name = nameOf(folder.replace(/^\.partial-/, ""));
    if (used.some((want) => ownName(want) === name)) {
      return refusal("in_use", `a shard of this node uses ${folder}: stop it first`);
    }
    const fetching = [...this.#fetching.values()].find(({ want }) => ownName(want) === name);
    if (fetching !== undefined) {
      await (await fetching.run).stop();
      await fetching.done;
    }
    const ending = await this.#once("remove", {
      ...this.#options.settings,
      verb: "remove",
      source: "",
      into: this.#options.into,
      folder,
    });
    this.#options.onChange();
    if (ending.kind === "removed" || ending.kind === "failed") {
      if (ending.kind === "removed") this.#forgetFailure(name);
      return ending;
    }
    return refusal("system_error", `heddle-fetch answered ${ending.kind}`);
  }

  /** What a source holds, before anything of it is fetched. Never rejects. */
  async inspect(want: VersionedWant): Promise<Refusal | ReportOf<"inspected">> {
    const ending = await this.#once("inspect", this.#request("inspect", want));
    if (ending.kind === "inspected" || ending.kind === "failed") return ending;
    return refusal("system_error", `heddle-fetch answered ${ending.kind}`);
  }

  /** Ends nothing that runs. */
  close(): void {
    this.#options.runs.close();
  }

  /** Everything there is, by folder. */
  async list(): Promise<readonly WeightsHere[]> {
    const here = (await listOwn(this.#options.into)).map((own) => this.#ready(own));
    const on = [...this.#fetching.values()].map(onItsWay);
    const { now } = this.#options;
    for (const [key, { at }] of this.#failed) {
      if (now() - at > FAILURE_MS) this.#failed.delete(key);
    }
    const failed = [...this.#failed.values()].map(({ want, refusal: { reason, message } }) => ({
      ...NOTHING,
      want,
      state: "failed" as const,
      reason,
      message,
    }));
    return [...here, ...on, ...failed];
  }

  #fetch(want: VersionedWant): Fetching {
    const key = keyOf(want);
    const known = this.#fetching.get(key);
    if (known !== undefined) return known;
    log.info("Fetching weights", { source: want.source });
    return this.#track(
      want,
      this.#options.runs.start(ownName(want), this.#request("fetch", want)),
    );
  }

  #track(want: VersionedWant, run: Promise<FetchRun>): Fetching {
    const key = keyOf(want);
    this.#failed.delete(key);
    const fetching: Fetching = {
      want,
      run,
      done: this.#outcome(want, run),
      report: undefined,
      listeners: new Set(),
    };
    this.#fetching.set(key, fetching);
    run.then((started) => {
      started.onReport = (report) => {
        fetching.report = report;
        for (const tell of fetching.listeners) tell(report);
      };
    }, () => {});
    this.#options.onChange();
    return fetching;
  }

  async #outcome(want: VersionedWant, starting: Promise<FetchRun>): Promise<Ensured> {
    let result: Ensured;
    try {
      const ending = await (await starting).ended;
      result = ending.kind === "done"
        ? { kind: "ready", path: join(this.#options.into, ending.folder, ending.entry) }
        : ending.kind === "failed"
        ? { ...ending, permanent: isPermanent(ending.reason) }
        : refusal("system_error", `heddle-fetch answered ${ending.kind}`);
    } catch (error) {
      result = refusal("system_error", errorText(error));
    }
    const key = keyOf(want);
    this.#fetching.delete(key);
    if (result.kind === "failed") {
      log.warning("Cannot fetch weights", { source: want.source, why: result.message });
      this.#failed.set(key, { want, refusal: result, at: this.#options.now() });
    } else log.info("Fetched weights", { source: want.source, path: result.path });
    this.#options.onChange();
    return result;
  }

  async #once(
    name: string,
    request: FetchRequestInput,
  ): Promise<Refusal | ReportOf<"removed" | "inspected" | "done">> {
    const over = new AbortController();
    try {
      const run = await this.#options.runs.start(name, request);
      const late = delay(INSPECT_MS_MAX, over.signal).then(() => "late" as const);
      const ending = await Promise.race([run.ended, late]);
      if (ending !== "late" && ending.kind === "progress") {
        return refusal("system_error", "heddle-fetch ended in the middle");
      }
      if (ending === "late") {
        await run.stop();
        return refusal("unreachable", `no answer within ${INSPECT_MS_MAX / 1_000} s`);
      }
      return ending.kind === "failed"
        ? { ...ending, permanent: isPermanent(ending.reason) }
        : ending;
    } catch (error) {
      return refusal("system_error", errorText(error));
    } finally {
      over.abort();
    }
  }

  #request(verb: "fetch" | "inspect", want: VersionedWant): FetchRequestInput {
    const { source, include, exclude, version } = want;
    const { settings, into } = this.#options;
    return {
      ...settings,
      verb,
      source,
      include: [...include],
      exclude: [...exclude],
      version,
      into,
    };
  }

  #ready({ folder, manifest }: OwnWeights): WeightsHere {
    const { source, include, exclude, version, entry, total_bytes } = manifest;
    return {
      ...NOTHING,
      want: { source, include, exclude, version },
      state: "ready",
      folder,
      path: join(this.#options.into, folder, entry),
      sizeBytes: total_bytes,
      doneBytes: total_bytes,
    };
  }

  #pathOf({ folder, manifest }: OwnWeights): string {
    return join(this.#options.into, folder, manifest.entry);
  }

  #forgetFailure(name: string | undefined): void {
    for (const [key, { want }] of this.#failed) {
      if (ownName(want) === name) this.#failed.delete(key);
    }
  }
}

const NOTHING = {
  folder: "",
  path: "",
  sizeBytes: 0,
  doneBytes: 0,
  bytesPerSecond: undefined,
  secondsLeft: undefined,
  reason: "",
  message: "",
} as const;

function onItsWay({ want, report }: Fetching): WeightsHere {
  const state = "fetching" as const;
  if (report?.kind !== "progress") return { ...NOTHING, want, state };
  const version = report.version === "" ? want.version : report.version;
  return {
    ...NOTHING,
    want: { ...want, version },
    state,
    folder: version === "" ? "" : partialName(`${ownName(want)}@${version.slice(0, 12)}`),
    sizeBytes: report.total_bytes,
    doneBytes: report.done_bytes,
    bytesPerSecond: report.bytes_per_second,
    secondsLeft: report.seconds_left,
    message: report.note,
  };
}

function keyOf(want: VersionedWant): string {
  return `${ownName(want)}@${want.version}`;
}

function refusal(reason: WeightsReason, message: string): Refusal {
  return { kind: "failed", reason, message, permanent: isPermanent(reason) };
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return promise;
}
