/** What the supervisor has done for it: the effects of a shard's state machine, on real processes. */
import { probeEngine } from "@heddle/common/engine/probe";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { Effect, EngineLoad, ShardEvent } from "./core/shard/event.ts";
import { isBusy } from "./core/shard/serving/stall.ts";
import type { Evidence } from "./core/diagnosis/evidence.ts";
import { type GpuUse, unreleased } from "./core/gpu/gpu_release.ts";
import { redactLine, secretsOf } from "./core/redact_line.ts";
import {
  type Failure,
  handlesOf,
  type PlannedProcess,
  type ProcessRef,
  type Shard,
} from "./core/shard/shard.ts";
import { thresholdsOf } from "./core/shard/timing.ts";
import { readLoad } from "./edge/engine/load.ts";
import type { Launcher, LiveMember, LiveProcess, Signal } from "./edge/launcher/launcher.ts";
import { tailLines } from "./edge/log/log_file.ts";
import { ShardLogs } from "./edge/log/shard_logs.ts";
import type { Loaded, ShardStore } from "./edge/shard_store.ts";
import { adapterOf } from "./engines/adapters.ts";
import type { EngineProcess } from "./engines/engine.ts";
import type { Prepared } from "./prepare.ts";

const log = logger("agent", "effects");

/** Lines of a failed engine that go with its status. */
const TAIL_LINES = 50;
/** Rounds in which what nobody owns is killed; each waits for the kernel a moment. */
const STRAY_ROUNDS_MAX = 20;
const STRAY_ROUND_MS = 100;

export interface EffectsOptions {
  readonly store: ShardStore;
  readonly launcher: Launcher;
  readonly address: string;
  /** May reject once `signal` aborts. */
  readonly prepare: (shard: Shard, signal: AbortSignal) => Promise<Prepared>;
  /** A name for a process of that shard, which no process ever had or will have. */
  readonly makeHandle: (shardId: string) => string;
  /** How long an engine may take for one token, in ms; absent: as its spec says. */
  readonly tokenMsMax?: number;
  /** Who uses the node's GPUs, from a look that begins now; undefined, or absent: unknown. */
  readonly gpuUses?: (signal: AbortSignal) => Promise<readonly GpuUse[] | undefined>;
  /** What is known of a failure beside its log. Never rejects; absent: nothing. */
  readonly evidence?: (shard: Shard, signal: AbortSignal) => Promise<Evidence>;
  /** Told of each process that begins to be watched. */
  readonly memlock?: { look(shard: Shard, process: ProcessRef): void };
}

export class Effects {
  readonly #options: EffectsOptions;
  /** By shard and handle: command lines and environments between prepare and launch. */
  readonly #plans = new Map<string, ReadonlyMap<string, EngineProcess>>();
  readonly #preparing = new Map<string, AbortController>();
  readonly #probing = new Set<string>();
  readonly #checking = new Set<string>();
  readonly #logs = new ShardLogs();

  constructor(options: EffectsOptions) {
    this.#options = options;
  }

  /**
   * Does one effect. What comes of it is an event; undefined when nothing is to be told. `signal`
   * ends what may be left undone (checks, probes); what concerns processes is finished.
   */
  async run(shard: Shard, effect: Effect, signal: AbortSignal): Promise<ShardEvent | undefined> {
    switch (effect.type) {
      case "prepare":
        return await this.#prepare(shard, signal);
      case "launch":
        return await this.#launch(shard, effect.processes);
      case "probe":
        return await this.#probe(shard, effect.token, signal);
      case "measure":
        return { type: "measured", load: await this.measure(shard, signal) };
      case "terminate":
        await this.#signal(effect.processes, "SIGTERM");
        return undefined;
      case "kill":
        await this.#signal(effect.processes, "SIGKILL");
        return undefined;
      case "count":
        return await this.#count(effect.processes);
      case "check_gpus":
        return await this.#checkGpus(shard, signal);
      default:
        return effect satisfies never;
    }
  }

  /** Resolves when a process has ended. Keeps its log bounded until then. Rejects on abort. */
  async watch(
    shard: Shard,
    process: ProcessRef,
    signal: AbortSignal,
  ): Promise<Extract<ShardEvent, { type: "exited" }>> {
    const { launcher, store, memlock } = this.#options;
    memlock?.look(shard, process);
    const directory = store.run(shard.spec.shardId, process.handle);
    const done = new AbortController();
    const following = this.#logs.follow(
      process.handle,
      { log: launcher.logFile(directory), directory, secrets: secretsOfShard(shard) },
      AbortSignal.any([done.signal, signal]),
    );
    try {
      const exit = await launcher.exit(process, directory, signal);
      // Nobody cuts the log any more while its end is read.
      done.abort();
      await following;
      const logTail = await this.#tail(shard, directory);
      return {
        type: "exited",
        handle: process.handle,
        ...(exit === undefined ? {} : { exit }),
        logTail,
        ...await this.#diagnosis(shard, exit, signal),
      };
    } finally {
      done.abort();
      await following;
      this.#logs.forget(process.handle);
    }
  }

  /** The load of a shard's leader; what it does not tell is absent. */
  measure(shard: Shard, signal: AbortSignal): Promise<EngineLoad> {
    const adapter = adapterOf(shard.spec.engine);
    if (adapter === undefined) return Promise.resolve({});
    return readLoad({ ...this.#leader(shard), signal }, adapter.load);
  }

  /**
   * What lives of each shard that an earlier agent left. What lives of none of them is stopped: an
   * engine that nobody owns would hold its GPUs for ever.
   */
  async find(loaded: Loaded): Promise<ReadonlyMap<string, readonly ProcessRef[]>> {
    const live = await this.#options.launcher.list();
    const known = new Map(
      loaded.shards.flatMap((shard) =>
        plannedOf(shard).map((process) => [process.handle, { shard, process }] as const)
      ),
    );
    const found = new Map<string, ProcessRef[]>();
    const strays: LiveProcess[] = [];
    for (const each of live) {
      const owner = known.get(each.handle);
      if (owner !== undefined) {
        if (!each.whole) continue;
        const { shardId } = owner.shard.spec;
        const { name, handle } = owner.process;
        const { pid, started, mainPid } = each;
        const ref = {
          ...{ name, handle, pid, started, ...programOf(owner.process) },
          ...(mainPid === undefined ? {} : { mainPid }),
        };
        found.set(shardId, [...found.get(shardId) ?? [], ref]);
      } else if (
        !loaded.unknownVersion.some(({ directory }) => isBelow(each.directory, directory))
      ) {
        strays.push(each);
      }
    }
    for (const stray of strays) await this.#killStray(stray);
    return found;
  }

  async #prepare(shard: Shard, ending: AbortSignal): Promise<ShardEvent | undefined> {
    // One of an earlier attempt may still wait for weights: what it would plan is not wanted any more.
    this.#preparing.get(shard.spec.shardId)?.abort();
    const newer = new AbortController();
    this.#preparing.set(shard.spec.shardId, newer);
    const signal = AbortSignal.any([ending, newer.signal]);
    const prepared = await attempt(() => this.#options.prepare(shard, signal));
    if (this.#preparing.get(shard.spec.shardId) === newer) {
      this.#preparing.delete(shard.spec.shardId);
    }
    // The next agent prepares it anew.
    if (signal.aborted) return undefined;
    if (prepared instanceof Error) {
      return {
        type: "prepare_failed",
        failure: systemFailure("Cannot prepare the shard", prepared),
      };
    }
    if (prepared.kind === "failed") return { type: "prepare_failed", failure: prepared.failure };
    const plans = new Map(
      prepared.processes.map((process) =>
        [this.#options.makeHandle(shard.spec.shardId), process] as const
      ),
    );
    this.#plans.set(shard.spec.shardId, plans);
    const processes = [...plans].map(([handle, { name, argv }]) => ({
      name,
      handle,
      ...programOf({ program: argv[0] }),
    }));
    return { type: "prepared", processes };
  }

  async #launch(shard: Shard, planned: readonly PlannedProcess[]): Promise<ShardEvent> {
    const { store, launcher } = this.#options;
    const { shardId } = shard.spec;
    const plans = this.#plans.get(shardId);
    this.#plans.delete(shardId);
    const processes: ProcessRef[] = [];
    const failed = await attempt(async () => {
      // Logs of earlier attempts end here; the last one's stay until now.
      for (const old of await store.runs(shardId)) await Deno.remove(old, { recursive: true });
      for (const [position, { name, handle, program }] of planned.entries()) {
        const plan = plans?.get(handle);
        if (plan === undefined) throw new Error(`the plan of ${name} is gone`);
        const directory = await store.makeRun(shardId, { handle, name, position });
        const { argv, env } = plan;
        const started = await launcher.start({ name, handle, directory, argv, env });
        processes.push({ ...started, ...programOf({ program }) });
      }
    });
    if (!(failed instanceof Error)) return { type: "launched", processes };
    const what = `Cannot start ${shard.spec.engine}`;
    return {
      type: "launch_failed",
      processes,
      failure: { ...systemFailure(what, failed), reason: "launch_failed" },
    };
  }

  async #probe(
    shard: Shard,
    token: "always" | "when_idle",
    signal: AbortSignal,
  ): Promise<ShardEvent | undefined> {
    const { shardId, model } = shard.spec;
    if (this.#probing.has(shardId)) return undefined;
    this.#probing.add(shardId);
    try {
      // An engine that is full of requests answers a probe late, and proves by its work that it
      // lives.
      const load = token === "always" ? undefined : await this.measure(shard, signal);
      const outcome = await probeEngine({
        ...this.#leader(shard),
        model,
        token: !isBusy(load),
        signal,
        tokenMsMax: this.#options.tokenMsMax ?? thresholdsOf(shard.spec).tokenMs,
      });
      // Whether it did anything else meanwhile says what its silence means.
      const silent = load !== undefined && outcome.kind === "wrong" &&
        outcome.reason === "no_token";
      const after = silent ? await this.measure(shard, signal) : undefined;
      if (signal.aborted) return undefined;
      return {
        type: "probed",
        outcome,
        ...(load === undefined ? {} : { load }),
        ...(after === undefined ? {} : { after }),
      };
    } finally {
      this.#probing.delete(shardId);
    }
  }

  async #signal(processes: readonly ProcessRef[], signal: Signal): Promise<void> {
    // The server first: it is the last that was started.
    for (const process of [...processes].reverse()) {
      const sent = await attempt(() => this.#options.launcher.signal(process, signal));
      if (sent instanceof Error) {
        log.warning(`Cannot send ${signal}`, { pid: process.pid, error: sent });
      }
    }
  }

  async #count(processes: readonly ProcessRef[]): Promise<ShardEvent | undefined> {
    const counted = await attempt(async () => {
      const members: LiveMember[] = [];
      for (const each of processes) members.push(...await this.#options.launcher.describe(each));
      return members;
    });
    if (!(counted instanceof Error)) {
      return {
        type: "counted",
        pids: counted.map(({ pid }) => pid),
        words: counted.map(({ words }) => words),
      };
    }
    // Asked again with the next tick; not knowing is not knowing them to be gone.
    log.warning("Cannot count what is left of a shard", { error: counted });
    return undefined;
  }

  async #checkGpus(shard: Shard, signal: AbortSignal): Promise<ShardEvent | undefined> {
    const { shardId, gpus } = shard.spec;
    if (this.#checking.has(shardId)) return undefined;
    this.#checking.add(shardId);
    try {
      const uses = await attempt(async () => await this.#options.gpuUses?.(signal));
      if (signal.aborted) return undefined;
      const still = unreleased(gpus, uses instanceof Error ? undefined : uses);
      return { type: "gpus_checked", ...(still === undefined ? {} : { unreleased: still }) };
    } finally {
      this.#checking.delete(shardId);
    }
  }

  async #killStray(stray: LiveProcess): Promise<void> {
    const { launcher } = this.#options;
    const process = { name: "stray", ...stray };
    log.error("Stopping a process of ours that belongs to no shard", {
      pid: stray.pid,
      folder: stray.directory,
    });
    for (let round = 0; round < STRAY_ROUNDS_MAX; round++) {
      await launcher.signal(process, "SIGKILL");
      if ((await launcher.members(process)).length === 0) return;
      await delay(STRAY_ROUND_MS, new AbortController().signal);
    }
    const pids = await launcher.members(process);
    log.error("It is still there after SIGKILL", { pids });
  }

  async #tail(shard: Shard, directory: string): Promise<readonly string[]> {
    const file = this.#options.launcher.logFile(directory);
    const lines = await attempt(() => tailLines(file, TAIL_LINES));
    if (lines instanceof Error) return [`(its log cannot be read: ${errorText(lines)})`];
    const secrets = secretsOfShard(shard);
    return lines.map((line) => redactLine(line, secrets));
  }

  async #diagnosis(shard: Shard, exit: Evidence["exit"], signal: AbortSignal) {
    const processes = "processes" in shard.state ? shard.state.processes : [];
    const known = await this.#options.evidence?.(shard, signal) ?? {};
    const evidence = exit === undefined ? known : { ...known, exit };
    const diagnosis = await this.#logs.diagnose(processes, evidence);
    if (diagnosis === undefined) return {};
    const { said } = diagnosis;
    const secrets = secretsOfShard(shard);
    return {
      diagnosis: said === undefined
        ? diagnosis
        : { ...diagnosis, said: { ...said, line: redactLine(said.line, secrets) } },
    };
  }

  #leader({ spec, apiKey }: Shard) {
    return { address: { host: this.#options.address, port: spec.portFirst }, apiKey };
  }
}

/** What comes of a launch that was not even tried. */
export function unlaunched(why: string): ShardEvent {
  const message = `Not started, because its state cannot be written down: ${why}`;
  return {
    type: "launch_failed",
    processes: [],
    failure: { reason: "system_error", message, permanent: false, logTail: [] },
  };
}

function programOf({ program }: Pick<PlannedProcess, "program">) {
  return program === undefined ? {} : { program };
}

function plannedOf({ state }: Shard): readonly PlannedProcess[] {
  if (handlesOf(state).length === 0) return [];
  return [
    ...("planned" in state ? state.planned : []),
    ...("processes" in state ? state.processes : []),
  ];
}

function secretsOfShard({ apiKey, spec }: Shard): readonly string[] {
  return secretsOf({ apiKey, env: spec.env });
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}

function systemFailure(what: string, error: Error): Failure {
  return {
    reason: "system_error",
    message: `${what}: ${errorText(error)}`,
    permanent: false,
    logTail: [],
  };
}

// One effect that fails must not stop the others; what failed goes into an event or the log.
async function attempt<T>(work: () => Promise<T>): Promise<T | Error> {
  try {
    return await work();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
