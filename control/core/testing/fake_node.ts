/**
 * A node for simulations: an agent and its engines as plain state, driven by commands and a clock
 * that the test owns. It is written from the wire's promises, not from control's code, and its
 * processes are what invariants are computed from.
 */
import type { Plain } from "@heddle/proto/plain";
import type { ShardReport, ShardSpec, ShardStatus } from "@heddle/proto/gen/types";
import { encodeShardState, type ShardState } from "@heddle/proto/shard_state";
import { compareRevisions, NO_REVISION, type Revision } from "@heddle/proto/revision";
import type { AgentEvent, Registered } from "../event.ts";
import type { EpochMs, NodeId, ShardId } from "../ids.ts";
import type { ShardCommand, StopShard } from "../plan.ts";
import { inventory, type NodeShape } from "./builders.ts";
import { type Curses, flawOf } from "./life/curses.ts";
import type { GoodReason } from "./permanence.ts";
import { FakeDisk } from "./weights/fake_disk.ts";

/** A shard on the node. GPUs are in use from `starting` until it has ended. */
export interface FakeShard {
  readonly spec: Plain<ShardSpec>;
  state: ShardState;
  revision: Revision;
  since: EpochMs;
  /** When the state ends by itself. */
  until: EpochMs | undefined;
  reason: string;
  apiKey: string;
  /** Starts of a process; more than one means that it was started again. */
  pid: number;
}

export interface FakeNodeOptions {
  readonly name: NodeId;
  readonly shape: NodeShape;
  readonly loadMs: number;
  readonly stopMs: number;
  readonly curses?: Curses;
  readonly disk?: FakeDisk;
}

/** Roomy, and without anybody else's files. */
const LARGE_DISK = { totalBytes: 2 ** 40, fetchMs: 1_000, foreign: [] };

const RUNNING: readonly ShardState[] = [
  "preparing",
  "starting",
  "loading",
  "ready",
  "degraded",
  "draining",
  "stopping",
];

export class FakeNode {
  readonly name: NodeId;
  readonly shape: NodeShape;
  readonly disk: FakeDisk;
  readonly shards = new Map<ShardId, FakeShard>();
  /** What went wrong that must never be: told to whoever checks invariants. */
  readonly faults: string[] = [];
  /** Rises with every change of a shard. */
  changes = 0;
  /** GPUs that are broken now, by index. */
  readonly badGpus = new Set<number>();
  /** Shards that failed for good, with why. They are remembered whatever becomes of the node. */
  readonly failedForGood = new Map<ShardId, GoodReason & Pick<FakeShard, "spec">>();
  /** How often its machine has started. */
  boot = 1;
  /** Version of its engine. */
  engineVersion = "0.28.1";
  /** Ports on which something listens that is not ours. */
  readonly foreignPorts = new Set<number>();
  readonly #loadMs: number;
  readonly #stopMs: number;
  readonly #curses: Curses | undefined;
  #saidBad = "";
  #saidVersion = "";
  #highest: Revision = NO_REVISION;
  #agent = 1;
  #pids = 0;
  #outbox: AgentEvent[] = [];

  constructor(options: FakeNodeOptions) {
    this.name = options.name;
    this.shape = options.shape;
    this.#loadMs = options.loadMs;
    this.#stopMs = options.stopMs;
    this.#curses = options.curses;
    this.disk = options.disk ?? new FakeDisk(LARGE_DISK);
  }

  /** What it would say on a new stream. Anything unsaid before is dropped with the old one. */
  register(now: EpochMs): Registered {
    this.#outbox = [];
    this.#saidBad = [...this.badGpus].join();
    this.#saidVersion = this.engineVersion;
    return {
      kind: "registered",
      node: this.name,
      agentVersion: "0.1.0",
      bootId: `boot-${this.boot}`,
      agentInstance: `agent-${this.#agent}`,
      address: `10.0.0.${this.name.replace(/\D/g, "")}`,
      inventory: {
        ...this.#inventory(),
        gpus: this.#gpus(),
        modelDirs: this.#modelDirs(),
        weights: this.disk.list(this.#users(), now),
      },
      shards: [...this.shards.values()].map((shard) => this.#report(shard)),
      highestRevision: this.#highest,
    };
  }

  /** Takes a command as an agent does: refuses old terms and old decisions about a shard. */
  command(command: ShardCommand, now: EpochMs): void {
    const known = this.shards.get(command.shard);
    const stale = command.revision.term < this.#highest.term ||
      (known !== undefined && compareRevisions(command.revision, known.revision) < 0);
    if (stale) return this.#answer(command, "stale_revision");
    if (compareRevisions(command.revision, this.#highest) > 0) this.#highest = command.revision;
    if (command.kind === "start_shard") this.#start(command.spec, command, now);
    else this.#stop(command, now);
  }

  /** Lets time pass: loads finish, stops end. */
  advance(now: EpochMs): void {
    for (const shard of this.shards.values()) {
      while (shard.until !== undefined && shard.until <= now) this.#next(shard, shard.until);
    }
  }

  /** Everything it has to say since it was last asked. */
  take(): AgentEvent[] {
    const said = this.#outbox;
    this.#outbox = [];
    return said;
  }

  /** `inFlight` is what each replica's engine really has. */
  heartbeat(inFlight: (replica: string) => number, now: EpochMs): AgentEvent {
    const bad = [...this.badGpus].join();
    const news = bad !== this.#saidBad;
    this.#saidBad = bad;
    const upgraded = this.engineVersion !== this.#saidVersion;
    this.#saidVersion = this.engineVersion;
    const { hcas, fabrics, engines } = this.#inventory();
    return {
      kind: "heartbeat",
      node: this.name,
      heartbeat: {
        gpus: news ? this.#gpus() : [],
        hcas: news ? hcas : [],
        fabrics: news ? fabrics : [],
        hardwarePresent: news,
        modelDirs: this.#modelDirs(),
        weights: this.disk.list(this.#users(), now),
        modelFiles: [],
        modelFilesPresent: false,
        engines: upgraded ? engines : [],
        enginesPresent: upgraded,
        problems: [],
        loads: [...this.shards.values()].filter((shard) => shard.state === "ready").map((
          shard,
        ) => ({
          shardId: shard.spec.shardId,
          runningRequests: inFlight(shard.spec.replicaId),
          waitingRequests: 0,
        })),
      },
    };
  }

  crash(shardId: ShardId, reason: string, now: EpochMs): void {
    const shard = this.shards.get(shardId);
    if (shard === undefined || !RUNNING.includes(shard.state)) return;
    this.#become(shard, "failed", now, undefined, reason);
  }

  /** The agent doubts an engine that serves, or takes its doubt back. */
  doubt(shardId: ShardId, doubted: boolean, now: EpochMs): void {
    const shard = this.shards.get(shardId);
    if (shard === undefined) return;
    const [state, reason] = doubted ? ["degraded", "engine_hung"] as const : ["ready", ""] as const;
    this.#become(shard, state, now, undefined, reason);
  }

  restartAgent(): void {
    this.#agent++;
    this.#outbox = [];
  }

  /** As an agent does it: only what Heddle fetched and no shard here uses. */
  removeWeights(folder: string, now: EpochMs): void {
    this.disk.remove(folder, new Set(this.#users().keys()), now);
  }

  restartMachine(now: EpochMs): void {
    this.disk.restart(now);
    this.boot++;
    this.#agent++;
    this.#outbox = [];
    this.shards.clear();
    this.changes++;
  }

  /** When it has something to do by itself; Infinity when it has not. */
  nextDue(): EpochMs {
    let due = Infinity;
    for (const { until } of this.shards.values()) {
      if (until !== undefined && until < due) due = until;
    }
    return due;
  }

  /** Shards with a live process. */
  running(): readonly FakeShard[] {
    return [...this.shards.values()].filter((shard) => RUNNING.includes(shard.state));
  }

  #start(spec: Plain<ShardSpec>, command: ShardCommand, now: EpochMs): void {
    const known = this.shards.get(spec.shardId);
    // The same decision again changes nothing, also once what it started has ended.
    const again = known !== undefined && compareRevisions(command.revision, known.revision) === 0;
    if (again || (known !== undefined && RUNNING.includes(known.state))) {
      return this.#answer(command, "");
    }
    const busy = this.running().find((other) =>
      other.spec.gpus.some((gpu) => spec.gpus.some((mine) => mine.uuid === gpu.uuid)) ||
      other.spec.portFirst === spec.portFirst
    );
    if (busy !== undefined) {
      this.faults.push(`${this.name}: ${spec.shardId} was given what ${busy.spec.shardId} holds`);
      return this.#answer(command, "gpu_in_use");
    }
    const shard: FakeShard = {
      spec,
      state: spec.weights === undefined ? "starting" : "preparing",
      revision: command.revision,
      since: now,
      until: spec.weights === undefined ? now + 100 : now,
      reason: "",
      apiKey: spec.rank === 0 ? `key-${spec.shardId}` : "",
      pid: ++this.#pids,
    };
    this.shards.set(spec.shardId, shard);
    this.changes++;
    this.#answer(command, "");
    this.#say(shard);
  }

  #stop(command: StopShard, now: EpochMs): void {
    const shard = this.shards.get(command.shard);
    this.#answer(command, "");
    if (shard === undefined) return;
    shard.revision = command.revision;
    if (!RUNNING.includes(shard.state) || shard.state === "stopping") return;
    this.#become(shard, "stopping", now, now + this.#stopMs, command.reason);
  }

  #next(shard: FakeShard, at: EpochMs): void {
    switch (shard.state) {
      case "preparing":
        return this.#prepare(shard, at);
      case "starting":
        return this.#load(shard, at);
      case "loading":
        return this.#become(shard, "ready", at, undefined, "");
      case "stopping":
        return this.#become(shard, "stopped", at, undefined, shard.reason);
      default:
        shard.until = undefined;
    }
  }

  #prepare(shard: FakeShard, at: EpochMs): void {
    const { weights } = shard.spec;
    const readyAt = weights === undefined ? at : this.disk.fetch(weights, at);
    if (readyAt === Infinity) {
      return this.#become(shard, "failed", at, undefined, "weights_not_fetched");
    }
    if (readyAt > at) shard.until = readyAt;
    else this.#become(shard, "starting", at, at + 100, "");
  }

  /** Shards with a process, by the source that they use. */
  #users(): ReadonlyMap<string, readonly string[]> {
    const users = new Map<string, string[]>();
    for (const { spec } of this.running()) {
      if (spec.weights === undefined) continue;
      const { source } = spec.weights;
      users.set(source, [...users.get(source) ?? [], spec.shardId]);
    }
    return users;
  }

  #modelDirs() {
    const freeBytes = BigInt(this.disk.freeBytes());
    return [{ path: "/var/lib/heddle/models", freeBytes, shared: false }];
  }

  #load(shard: FakeShard, at: EpochMs): void {
    const { model, rank } = shard.spec;
    const flaw = flawOf(this.#curses, shard.spec, this);
    if (flaw !== undefined) {
      const where = flaw.of === "node" ? { node: this.name } : {};
      const { reason } = flaw;
      this.failedForGood.set(shard.spec.shardId, { spec: shard.spec, reason, ...where });
      return this.#become(shard, "failed", at, undefined, reason);
    }
    if (this.foreignPorts.has(shard.spec.portFirst)) {
      return this.#become(shard, "failed", at, undefined, "port_in_use");
    }
    if (this.#curses?.crash.has(model)) {
      return this.#become(shard, "failed", at, undefined, "exited");
    }
    // A leader does not answer before its workers are there; a worker alone may always be ready.
    const slow = rank === 0 && this.#curses?.slow.has(model) === true;
    const until = slow ? undefined : at + this.#loadMs;
    this.#become(shard, "loading", at, until, "");
  }

  #become(
    shard: FakeShard,
    state: ShardState,
    since: EpochMs,
    until: EpochMs | undefined,
    reason: string,
  ): void {
    Object.assign(shard, { state, since, until, reason });
    this.changes++;
    this.#say(shard);
  }

  #inventory() {
    const engines = [["vllm", this.engineVersion]] as const;
    return inventory(this.name, { engines, ...this.shape });
  }

  #gpus() {
    return this.#inventory().gpus.map((gpu) =>
      this.badGpus.has(gpu.index)
        ? { ...gpu, problems: [{ reason: "xid", detail: "Xid 79", remedy: "reset it" }] }
        : gpu
    );
  }

  #say(shard: FakeShard): void {
    this.#outbox.push({ kind: "shard_status", node: this.name, status: this.#status(shard) });
  }

  #answer(command: ShardCommand, reason: string): void {
    this.#outbox.push({
      kind: "command_result",
      node: this.name,
      result: {
        revision: wire(command.revision),
        shardId: command.shard,
        accepted: reason === "",
        reason,
        detail: reason,
      },
    });
  }

  #report(shard: FakeShard): Plain<ShardReport> {
    return { spec: shard.spec, status: this.#status(shard) };
  }

  #status(shard: FakeShard): Plain<ShardStatus> {
    const listens = shard.spec.rank === 0 && ["ready", "degraded"].includes(shard.state);
    return {
      shardId: shard.spec.shardId,
      replicaId: shard.spec.replicaId,
      state: encodeShardState(shard.state),
      revision: wire(shard.revision),
      attempt: shard.spec.attempt,
      reason: shard.reason,
      message: "",
      permanent: shard.state === "failed" && this.failedForGood.has(shard.spec.shardId),
      pid: shard.pid,
      address: listens ? `10.0.0.${this.name.replace(/\D/g, "")}:${shard.spec.portFirst}` : "",
      apiKey: shard.apiKey,
      logTail: [],
      inStateMs: 0n,
      progress: "",
    };
  }
}

function wire(revision: Revision): { readonly term: bigint; readonly sequence: bigint } {
  return { term: BigInt(revision.term), sequence: BigInt(revision.sequence) };
}
