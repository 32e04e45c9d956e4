/**
 * Owns this node's shards: feeds events to their state machines, writes down what they became, and
 * runs the effects they ask for. It decides nothing itself. Events of a shard are taken one by one;
 * what became of it is on disk before anything is done about it, so that an agent that ends between
 * any two steps is followed by one that finds the same.
 */
import { logger } from "@heddle/common/log";
import { spawnTask } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import { compareRevisions, NO_REVISION, type Revision } from "@heddle/proto/revision";
import { acceptStart, acceptStop, type Verdict } from "./core/accept.ts";
import type { LinkReadings } from "./core/health/link_fault.ts";
import type { Effect, EngineLoad, ShardEvent } from "./core/shard/event.ts";
import { begin, step, wakeAt } from "./core/shard/lifecycle.ts";
import { forgettable, KEEP_ENDED_MS } from "./core/shard/retention.ts";
import { ended, type ProcessRef, type Shard, type ShardSpec } from "./core/shard/shard.ts";
import { differs, type Status, statusOf } from "./core/shard/status.ts";
import { worthSaving } from "./core/shard/worth_saving.ts";
import type { ShardStore, Unusable } from "./edge/shard_store.ts";
import { type Effects, unlaunched } from "./effects.ts";
import { linkEvent } from "./supervision/link_event.ts";
import { type Corrupt, setAside } from "./supervision/set_aside.ts";
import { Lookers } from "./supervision/lookers.ts";
import { Timers } from "./supervision/timers.ts";

const log = logger("agent", "supervisor");

export interface SupervisorOptions {
  readonly store: ShardStore;
  readonly effects: Effects;
  /** The node's management address, at which its engines listen. */
  readonly address: string;
  readonly ports: { readonly first: number; readonly last: number };
  /** UUIDs of the node's GPUs by index; undefined while they have not been looked for. */
  readonly gpus: () => ReadonlyMap<number, string> | undefined;
  /** How long a shard that was ready before the agent restarted has to answer, in ms. */
  readonly adoptReadyMs: number;
  readonly now: () => number;
  /** A key for a replica's engine, unguessable. */
  readonly makeKey: () => string;
  /** Called after each change that control has to hear of. */
  readonly onStatus: (shard: Shard, status: Status) => void;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #shards = new Map<string, Shard>();
  readonly #told = new Map<string, Status>();
  readonly #loads = new Map<string, EngineLoad>();
  readonly #timers = new Timers();
  /** Per shard, the end of what is being written and done; see `#apply`. */
  readonly #work = new Map<string, Promise<void>>();
  /** Handles; each is unique, and its process ends once. */
  readonly #watched = new Set<string>();
  readonly #lookers = new Lookers();
  readonly #closing = new AbortController();
  /** Effects under way. */
  readonly #tasks = new Set<Promise<void>>();
  #closed = false;
  #highest: Revision = NO_REVISION;
  #links: LinkReadings | undefined;
  #unreadable: readonly Unusable[] = [];
  #corrupt: readonly Corrupt[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Takes over what an earlier agent started. Call once, before any command. */
  async adopt(): Promise<void> {
    const { store, effects, adoptReadyMs } = this.#options;
    const loaded = await store.load();
    this.#unreadable = loaded.unknownVersion;
    this.#highest = loaded.shards.map(({ revision }) => revision)
      .reduce(later, await store.readHighest());
    const found = await effects.find(loaded);
    for (const shard of loaded.shards) {
      this.#shards.set(shard.spec.shardId, shard);
      const live = found.get(shard.spec.shardId) ?? [];
      const pids = live.map(({ pid }) => pid);
      log.info("Adopting shard", { shard: shard.spec.shardId, state: shard.state.kind, pids });
      this.#apply(shard.spec.shardId, { type: "resumed", live, adoptReadyMs });
    }
    for (const { shardId, why } of loaded.unknownVersion) {
      log.warning("Keeping a shard whose state this agent cannot read", { shard: shardId, why });
    }
    this.#corrupt = await setAside(loaded.corrupt, store);
  }

  /** Decides about a StartShard; when it is accepted, its state is on disk on return. */
  async start(command: { spec: ShardSpec; revision: Revision }): Promise<Verdict> {
    const verdict = acceptStart(command, this.#node());
    if (verdict.kind === "refused") return verdict;
    const { spec, revision } = command;
    const unwritable = await this.#raise(revision);
    // What could not be adopted later is better not started.
    if (unwritable !== undefined) {
      return { kind: "refused", reason: "state_not_writable", detail: unwritable };
    }
    if (verdict.kind === "start") {
      log.info("Starting shard", {
        shard: spec.shardId,
        replica: spec.replicaId,
        model: spec.model,
        engine: spec.engine,
      });
      const apiKey = spec.rank === 0 ? this.#options.makeKey() : "";
      const started = begin({ spec, revision, apiKey }, this.#options.now());
      this.#become(started.shard, started.effects, undefined);
      await this.#work.get(spec.shardId);
    } else {
      this.#order(spec.shardId, revision);
    }
    return verdict;
  }

  /** Decides about a StopShard; when it is accepted, its state is on disk on return. */
  async stop(
    command: { shardId: string; revision: Revision; reason: string; graceMs: number },
  ): Promise<Verdict> {
    const verdict = acceptStop(command, this.#node());
    if (verdict.kind === "refused") return verdict;
    await this.#raise(command.revision);
    if (verdict.kind === "stop") {
      const { shardId, revision, reason, graceMs } = command;
      log.info("Stopping shard", { shard: shardId, reason, graceMs });
      this.#apply(shardId, { type: "stop", revision, reason, graceMs });
      await this.#work.get(shardId);
    }
    return verdict;
  }

  get highest(): Revision {
    return this.#highest;
  }

  /** Every shard with what is true of it now. */
  statuses(): readonly { readonly shard: Shard; readonly status: Status }[] {
    return [...this.#shards.values()].map((shard) => ({ shard, status: this.#statusOf(shard) }));
  }

  /** Shards that were found corrupt when this agent started, and where what is left of them lies. */
  get corrupt(): readonly Corrupt[] {
    return this.#corrupt;
  }

  /** Shards that are kept but cannot be read. */
  get unreadable(): readonly Unusable[] {
    return this.#unreadable;
  }

  find(shardId: string): Shard | undefined {
    return this.#shards.get(shardId);
  }

  /** How far the weights are that a shard waits for. */
  fetching(shardId: string, progress: string): void {
    this.#apply(shardId, { type: "fetching", progress });
  }
  /** UUIDs of the GPUs that shards of this node hold. */
  heldGpus(): ReadonlySet<string> {
    const specs = [...this.#shards.values()].filter(({ state }) => !ended(state))
      .map(({ spec }) => spec);
    return new Set(
      [...specs, ...this.#unreadable.flatMap(({ spec }) => spec ?? [])]
        .flatMap(({ gpus }) => gpus.map(({ uuid }) => uuid)),
    );
  }

  /** Asks every leader that serves for its load. */
  async measure(): Promise<void> {
    const serving = [...this.#shards.values()].filter((shard) =>
      this.#statusOf(shard).address !== ""
    );
    await Promise.all(serving.map(async (shard) => {
      this.#loads.set(
        shard.spec.shardId,
        await this.#options.effects.measure(shard, this.#closing.signal),
      );
    }));
  }

  /** Takes in what is known of the links that shards use. */
  judgeLinks(readings: LinkReadings): void {
    this.#links = readings;
    for (const shard of [...this.#shards.values()]) {
      const event = linkEvent(shard, readings);
      if (event !== undefined) this.#apply(shard.spec.shardId, event);
    }
  }

  /** Orders every shard to end and waits until all have, or `signal` aborts. */
  async stopAll(reason: string, signal: AbortSignal): Promise<void> {
    for (const [shardId, { revision, state }] of this.#shards) {
      if (!ended(state)) this.#apply(shardId, { type: "stop", revision, reason, graceMs: 0 });
    }
    await this.settled(({ state }) => ended(state), signal);
  }

  /** Resolves once `done` holds for every shard, or when `signal` aborts. */
  settled(done: (shard: Shard) => boolean, signal: AbortSignal): Promise<void> {
    return this.#lookers.until(() => [...this.#shards.values()].every(done), signal);
  }

  /** Ends the supervision, and touches no engine. Resolves when nothing of it runs any more. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#timers.clearAll();
    // What is just being started is still written down, for the next agent to find.
    await Promise.all(this.#work.values());
    await Promise.all(this.#tasks);
    await Promise.all(this.#work.values());
    this.#closed = true;
  }

  #node() {
    return {
      highest: this.#highest,
      shards: this.#shards,
      unreadable: this.#unreadable,
      gpus: this.#options.gpus(),
      ports: this.#options.ports,
    };
  }

  // Returns why it could not be written down; it counts all the same until the agent ends.
  async #raise(revision: Revision): Promise<string | undefined> {
    if (compareRevisions(revision, this.#highest) <= 0) return undefined;
    this.#highest = revision;
    try {
      await this.#options.store.writeHighest(revision);
      return undefined;
    } catch (error) {
      log.error("Cannot write down the highest revision", { error });
      return `Cannot write to the agent's state directory: ${errorText(error)}`;
    }
  }

  // A command that changes nothing still says by which revision the shard is wanted.
  #order(shardId: string, revision: Revision): void {
    const shard = this.#shards.get(shardId);
    if (shard === undefined || compareRevisions(revision, shard.revision) <= 0) return;
    this.#become({ ...shard, revision }, [], shard);
  }

  #apply(shardId: string, event: ShardEvent): void {
    const shard = this.#shards.get(shardId);
    if (shard === undefined || this.#closed) return;
    const now = this.#options.now();
    const next = step(shard, event, now);
    // One that has just become ready over a bad link is never told to be ready, not for a moment.
    const links = event.type === "links_judged" ? undefined : linkEvent(next.shard, this.#links);
    const judged = links === undefined ? next : step(next.shard, links, now);
    const effects = judged === next ? next.effects : [...next.effects, ...judged.effects];
    this.#become(judged.shard, effects, shard);
  }

  #become(shard: Shard, effects: readonly Effect[], before: Shard | undefined): void {
    const { shardId } = shard.spec;
    this.#shards.set(shardId, shard);
    this.#watch(shard);
    this.#schedule(shard);
    const save = before === undefined || worthSaving(before, shard);
    if (save || effects.length > 0) this.#queue(shardId, shard, { save, effects });
    this.#tell(shard);
    if (ended(shard.state) && (before === undefined || !ended(before.state))) this.#tidy();
    this.#lookers.lookAgain();
  }

  // In order for each shard: first the state is written, then its effects begin.
  #queue(
    shardId: string,
    shard: Shard,
    what: { readonly save: boolean; readonly effects: readonly Effect[] },
  ): void {
    const before = this.#work.get(shardId) ?? Promise.resolve();
    const work = before.then(async () => {
      const unwritten = what.save && this.#shards.has(shardId)
        ? await this.#save(shard)
        : undefined;
      for (const effect of what.effects) {
        if (unwritten === undefined || effect.type !== "launch") this.#run(shard, effect);
        else this.#apply(shardId, unlaunched(unwritten));
      }
    });
    this.#work.set(shardId, work);
    spawnTask("supervisor", () => work);
  }

  // Returns why it could not be written. A full disk must not stop what runs: the next change tries
  // again. But what the next agent could not know of is not started.
  async #save(shard: Shard): Promise<string | undefined> {
    try {
      await this.#options.store.save(shard);
      return undefined;
    } catch (error) {
      log.error("Cannot write the state of a shard", { shard: shard.spec.shardId, error });
      return errorText(error);
    }
  }

  #run(shard: Shard, effect: Effect): void {
    const { signal } = this.#closing;
    if (signal.aborted) return;
    const { shardId } = shard.spec;
    const task = this.#options.effects.run(shard, effect, signal).then((event) => {
      if (event !== undefined) this.#apply(shardId, event);
    }).finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
    spawnTask(`${effect.type} of ${shardId}`, () => task);
  }

  #watch(shard: Shard): void {
    const processes: readonly ProcessRef[] = "processes" in shard.state
      ? shard.state.processes
      : [];
    if (this.#closing.signal.aborted) return;
    for (const process of processes) {
      if (this.#watched.has(process.handle)) continue;
      this.#watched.add(process.handle);
      const { signal } = this.#closing;
      spawnTask(`watch of ${process.handle}`, async () => {
        const event = await this.#options.effects.watch(shard, process, signal);
        log.info("Process ended", {
          shard: shard.spec.shardId,
          process: process.name,
          pid: process.pid,
          code: event.exit?.code,
          signal: event.exit?.signal,
        });
        this.#apply(shard.spec.shardId, event);
      }, signal);
    }
  }

  #schedule(shard: Shard): void {
    const { shardId } = shard.spec;
    this.#timers.clear(shardId);
    const at = ended(shard.state) ? shard.since + KEEP_ENDED_MS : wakeAt(shard);
    if (at === undefined || this.#closing.signal.aborted) return;
    this.#timers.set(shardId, at - this.#options.now(), () => {
      if (ended(shard.state)) this.#tidy();
      else this.#apply(shardId, { type: "tick" });
    });
  }

  #statusOf(shard: Shard): Status {
    const load = this.#loads.get(shard.spec.shardId) ?? {};
    return statusOf(shard, { address: this.#options.address, load }, this.#options.now());
  }

  #tell(shard: Shard): void {
    const { shardId } = shard.spec;
    const status = this.#statusOf(shard);
    const told = this.#told.get(shardId);
    if (told !== undefined && !differs(told, status)) return;
    this.#told.set(shardId, status);
    if (told?.state !== status.state) {
      log.info(`Shard is ${status.state}`, {
        shard: shardId,
        replica: shard.spec.replicaId,
        reason: status.reason || undefined,
        message: status.message || undefined,
      });
    }
    this.#options.onStatus(shard, status);
  }

  #tidy(): void {
    for (const shardId of forgettable(this.#shards.values(), this.#options.now())) {
      this.#forget(shardId);
    }
  }

  #forget(shardId: string): void {
    this.#shards.delete(shardId);
    this.#told.delete(shardId);
    this.#loads.delete(shardId);
    this.#timers.clear(shardId);
    const work = (this.#work.get(shardId) ?? Promise.resolve()).then(async () => {
      if (this.#shards.has(shardId)) return;
      try {
        await this.#options.store.remove(shardId);
      } catch (error) {
        log.warning("Cannot remove the folder of a shard", {
          shard: shardId,
          why: errorText(error),
        });
      }
      this.#work.delete(shardId);
    });
    this.#work.set(shardId, work);
    spawnTask("supervisor", () => work);
  }
}

function later(a: Revision, b: Revision): Revision {
  return compareRevisions(a, b) >= 0 ? a : b;
}
