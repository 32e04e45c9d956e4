/**
 * What must never be, whatever happens. Seen from outside: from the nodes' own processes, the
 * routers' own lists, and a ledger of what was done to the fleet. Never from World, which may be
 * wrong in the same way as the decisions that are made from it.
 */
import type { EpochMs, NodeId, ReplicaId } from "../ids.ts";
import type { Action, ShardCommand } from "../plan.ts";
import { classOf, fabricsOf, type ShapeFabric } from "./builders.ts";
import type { FakeNode, FakeShard } from "./fake_node.ts";
import type { Ledger } from "./ledger.ts";

export type Invariant =
  /** No GPU runs two engines, nor is promised to a second while the first has it. */
  | "gpu_used_once"
  /** All ranks of a replica on several nodes are on one fabric, and the one they are told. */
  | "one_fabric"
  /** A rank has HCAs of its fabric only, and as many as every other rank. */
  | "own_hcas"
  /** All ranks of a replica have GPUs of one class. */
  | "one_class"
  /** Nothing new starts on a node that is closed, silent or not there, nor on a broken GPU. */
  | "schedulable_node"
  /** Nothing new starts on a node without the labels that the profile selects by. */
  | "selected_node"
  /** Nothing new starts while known nodes may still say what they run. */
  | "settled_first"
  /** What was called something is never something else under that name. */
  | "id_used_once"
  /** A replica runs whole, or is on its way there or out. */
  | "whole_replica"
  /** No healthy engine is stopped without a reason. */
  | "healthy_kept"
  /** No healthy endpoint leaves a router's list without a reason. */
  | "endpoint_kept"
  /** No request is cut by a drain that was not at the end of its grace. */
  | "request_kept"
  /** What cannot start is not started over and over. */
  | "no_hot_loop"
  /** What failed for good is not tried again until something has changed. */
  | "permanent_kept"
  /** No weights are removed that a model or an engine asks for, nor what Heddle did not fetch. */
  | "weights_kept"
  /** Plans break no rule. */
  | "plan_checked"
  /** Once all is well, the desired number is reached in time wherever there is room. */
  | "desired_in_time"
  /** Once all is well, the desired number runs wherever there is room, and nothing else does. */
  | "desired_reached";

export interface Violation {
  readonly invariant: Invariant;
  /** When, from the start of the run, and what. */
  readonly detail: string;
}

type Report = (invariant: Invariant, detail: string) => void;

/** Longest time that part of a replica may run while every node of it is in reach, in ms: a start with
 * its timeout of 2 min, lost commands, the wait for the missing, and the stop. */
const PART_MS_MAX = 240_000;

/** Starts of one model's leaders within `LOOP_MS` that even a burst of new replicas does not need. */
const STARTS_MAX = 24;
const LOOP_MS = 30_000;

/** Whether an adapter of that name is one of the fabric's, by how the node was built. */
function isOf({ from, count }: ShapeFabric, name: string): boolean {
  const number = Number(name.replace(/^mlx5_/, ""));
  return number >= from && number < from + count;
}

function classesOf(node: FakeNode, { spec }: FakeShard): ReadonlySet<string> {
  return new Set(spec.gpus.map(({ index }) => classOf(node.shape, index)));
}

export class Invariants {
  readonly #nodes: ReadonlyMap<NodeId, FakeNode>;
  readonly #ledger: Ledger;
  readonly #report: Report;
  readonly #changes = new Map<NodeId, number>();
  readonly #partSince = new Map<ReplicaId, EpochMs>();
  readonly #starts = new Map<string, EpochMs[]>();
  readonly #lists = new Map<string, ReadonlyMap<ReplicaId, boolean>>();

  constructor(nodes: ReadonlyMap<NodeId, FakeNode>, ledger: Ledger, report: Report) {
    this.#nodes = nodes;
    this.#ledger = ledger;
    this.#report = report;
  }

  /** Looks at a decision when it is made. */
  decided(action: Action): void {
    const { permanence } = this.#ledger;
    if (action.kind === "place_replica") {
      this.#ledger.placed(action.replica);
      const { model, profile } = action;
      for (const { node } of action.shards) {
        const why = permanence.why({ model, profile, node });
        if (why === undefined) continue;
        this.#report("permanent_kept", `${action.replica} is tried on ${node} again: ${why}`);
      }
    } else if (action.kind === "fail_replica" && action.shard !== undefined) {
      for (const { failedForGood } of this.#nodes.values()) {
        const good = failedForGood.get(action.shard);
        if (good !== undefined) permanence.failed(good.spec, good);
      }
    }
  }

  /** Looks at a command when control sends it. */
  sent(command: ShardCommand, now: EpochMs): void {
    if (command.kind !== "start_shard") return;
    const ledger = this.#ledger;
    const { shard, node: name, spec } = command;
    const first = ledger.firstStart(command);
    if (first.elsewhere) this.#report("id_used_once", `${shard} is another one now, on ${name}`);
    if (!first.ofShard) return;
    const missing = ledger.unheard(now);
    if (missing.length > 0) {
      this.#report("settled_first", `${shard} starts before ${missing.length} nodes are heard`);
    }
    const label = ledger.unselected(command);
    if (label !== undefined) this.#report("selected_node", `${shard} on ${name}, without ${label}`);
    if (!first.ofReplica) return;
    const why = ledger.whyClosed(name, now);
    if (why !== undefined) this.#report("schedulable_node", `${shard} on ${name}, which ${why}`);
    const bad = spec.gpus.find(({ index }) => ledger.knownBad(name, index));
    if (bad !== undefined) this.#report("schedulable_node", `${shard} on broken ${bad.uuid}`);
  }

  /** Looks at a removal of weights when control sends it. `asked`: an operator wants it. */
  removed(name: NodeId, folder: string, { asked }: { readonly asked: boolean }): void {
    const source = this.#nodes.get(name)?.disk.sourceOf(folder);
    // What people ask for the node judges: it alone sees what is Heddle's.
    if (source === undefined) {
      if (!asked) this.#report("weights_kept", `${folder} on ${name} was not fetched`);
      return;
    }
    const wanting = this.#ledger.modelOfSource(source);
    if (!asked && wanting !== undefined) {
      this.#report("weights_kept", `${folder} on ${name} is of ${wanting}, which is wanted`);
    }
    for (const node of this.#nodes.values()) {
      const heard = node.name === name || (!asked && this.#ledger.hasStream(node.name));
      const user = heard && node.running().find(({ spec }) => spec.weights?.source === source);
      if (!user) continue;
      this.#report("weights_kept", `${folder} on ${name} is used by ${user.spec.shardId}`);
    }
  }

  /** Looks at a command when it arrives, before the node acts on it. */
  arrives(node: FakeNode, command: ShardCommand, now: EpochMs): void {
    const shard = node.shards.get(command.shard);
    if (command.kind === "start_shard") {
      if (command.spec.rank === 0 && shard === undefined) this.#started(command.spec.model, now);
      return;
    }
    if (shard?.state !== "ready" || !this.#healthy(shard)) return;
    if (this.#ledger.excused(shard.spec)) return;
    this.#report("healthy_kept", `${command.shard} on ${node.name} is stopped: ${command.reason}`);
  }

  /** Looks at a router's list of endpoints after it changed. */
  listed(router: string, list: ReadonlyMap<ReplicaId, boolean>): void {
    for (const [replica, draining] of this.#lists.get(router) ?? []) {
      const still = list.get(replica);
      if (draining || still === false) continue;
      const lead = this.#leaderOf(replica);
      if (lead?.state !== "ready" || !this.#healthy(lead)) continue;
      if (this.#ledger.excused(lead.spec)) continue;
      const how = still === undefined ? "dropped" : "drained";
      this.#report("endpoint_kept", `${router} has ${how} ${replica}, which is well`);
    }
    this.#lists.set(router, list);
  }

  /** Looks at the nodes' processes, if anything has changed. */
  look(now: EpochMs): void {
    let changed = false;
    for (const node of this.#nodes.values()) {
      for (const fault of node.faults.splice(0)) this.#report("gpu_used_once", fault);
      if (this.#changes.get(node.name) === node.changes) continue;
      this.#changes.set(node.name, node.changes);
      changed = true;
      this.#lookAt(node);
    }
    if (changed) this.#lookAcross(now);
    this.#lookAtParts(now);
  }

  #lookAt(node: FakeNode): void {
    const used = new Set<string>();
    for (const { spec } of node.running()) {
      for (const { uuid } of spec.gpus) {
        if (used.has(uuid)) this.#report("gpu_used_once", `${uuid} is used twice`);
        used.add(uuid);
      }
      if (spec.shardCount < 2) continue;
      const fabrics = fabricsOf(node.shape);
      const told = fabrics.find(({ name }) => name === spec.fabric);
      if (told === undefined) {
        const own = fabrics.map(({ name }) => name).join(" and ") || "none";
        this.#report("one_fabric", `${spec.shardId} is told ${spec.fabric} on ${own}`);
      }
      if (spec.hcas.length === 0) {
        this.#report("own_hcas", `${spec.shardId} has none on ${node.name}`);
      }
      for (const { name } of spec.hcas) {
        if (told === undefined || isOf(told, name)) continue;
        this.#report("own_hcas", `${spec.shardId} has ${name}, which is not of ${spec.fabric}`);
      }
    }
  }

  /** Ranks of one replica are of one fabric and one class, whatever control believes. */
  #lookAcross(now: EpochMs): void {
    const seen = new Map<ReplicaId, { node: FakeNode; shard: FakeShard }>();
    const counts = new Map<ReplicaId, number>();
    for (const node of this.#nodes.values()) {
      for (const shard of node.running()) {
        const { replicaId, shardCount, hcas, fabric } = shard.spec;
        const mixed = classesOf(node, shard);
        if (mixed.size > 1) {
          const words = [...mixed].sort().join(", ");
          this.#report("one_class", `${shard.spec.shardId} has ${words} on ${node.name}`);
        }
        counts.set(replicaId, (counts.get(replicaId) ?? 0) + 1);
        const other = seen.get(replicaId);
        seen.set(replicaId, { node, shard });
        if (other === undefined || shardCount < 2) continue;
        const both = `${replicaId} spans ${other.node.name} and ${node.name}`;
        const its = other.shard.spec.fabric;
        if (fabric !== its) this.#report("one_fabric", `${both}: ${its}, ${fabric}`);
        const all = new Set([...mixed, ...classesOf(other.node, other.shard)]);
        if (all.size > 1) this.#report("one_class", `${both}: ${[...all].sort().join(", ")}`);
        if (hcas.length !== other.shard.spec.hcas.length) {
          this.#report("own_hcas", `${both} with ${other.shard.spec.hcas.length}, ${hcas.length}`);
        }
      }
    }
    for (const id of this.#partSince.keys()) if (!counts.has(id)) this.#partSince.delete(id);
    for (const [id, { shard }] of seen) {
      const part = (counts.get(id) ?? 0) < shard.spec.shardCount;
      if (!part) this.#partSince.delete(id);
      else if (!this.#partSince.has(id)) this.#partSince.set(id, now);
    }
  }

  #lookAtParts(now: EpochMs): void {
    for (const [id, since] of this.#partSince) {
      const from = Math.max(since, this.#ledger.quietSince);
      if (now - from <= PART_MS_MAX) continue;
      this.#report("whole_replica", `${id} has run in part for ${now - from} ms`);
      this.#partSince.set(id, now);
    }
  }

  #started(model: string, now: EpochMs): void {
    const recent = (this.#starts.get(model) ?? []).filter((at) => now - at < LOOP_MS);
    recent.push(now);
    this.#starts.set(model, recent);
    if (recent.length === STARTS_MAX) {
      this.#report("no_hot_loop", `${model} was started ${STARTS_MAX} times in ${LOOP_MS} ms`);
    }
  }

  /** Its whole replica runs well. */
  #healthy({ spec }: FakeShard): boolean {
    const ready = [...this.#nodes.values()].flatMap((node) => [...node.shards.values()])
      .filter((each) => each.spec.replicaId === spec.replicaId && each.state === "ready");
    return ready.length === spec.shardCount;
  }

  #leaderOf(replica: ReplicaId): FakeShard | undefined {
    for (const node of this.#nodes.values()) {
      for (const shard of node.shards.values()) {
        if (shard.spec.replicaId === replica && shard.spec.rank === 0) return shard;
      }
    }
    return undefined;
  }
}
