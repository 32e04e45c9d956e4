/**
 * What was done to a simulated fleet and what control was told, kept apart from control's own account
 * of it. Invariants ask it what control had a right to do.
 */
import type { Plain } from "@heddle/proto/plain";
import type { ShardSpec } from "@heddle/proto/gen/types";
import type { Catalog, Model } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import type { Event } from "../event.ts";
import type { EpochMs, NodeId, ReplicaId, ShardId } from "../ids.ts";
import type { StartShard } from "../plan.ts";
import type { Timings } from "../timings.ts";

/** A pass may look a little later than this ledger. */
const SLACK_MS = 500;

export class Ledger {
  /** When the last fault was injected. */
  quietSince: EpochMs = 0;
  readonly #timings: Timings;
  readonly #closed = new Set<NodeId>();
  readonly #heardAt = new Map<NodeId, EpochMs>();
  readonly #connected = new Set<NodeId>();
  readonly #bad = new Map<NodeId, ReadonlySet<number>>();
  readonly #excusedModels = new Set<string>();
  /** Models of which anything was ever started on a node. */
  readonly #modelsOn = new Map<NodeId, Set<string>>();
  /** Every shard that was ever started, with where and on what. */
  readonly #shards = new Map<ShardId, string>();
  /** Every replica that was ever started, with its model. */
  readonly #replicas = new Map<ReplicaId, string>();
  #everything = false;
  #startedAt: EpochMs = 0;
  #unheard = new Set<NodeId>();

  constructor(timings: Timings) {
    this.#timings = timings;
  }

  /** Control began anew, remembering these nodes and the closed ones among them. */
  began(now: EpochMs, known: Iterable<NodeId>, closed: Iterable<NodeId>): void {
    this.#startedAt = now;
    this.#unheard = new Set(known);
    this.#connected.clear();
    this.#heardAt.clear();
    this.#bad.clear();
    this.#closed.clear();
    for (const node of closed) this.#closed.add(node);
  }

  /** Control was given an event. */
  told(event: Event, now: EpochMs): void {
    switch (event.kind) {
      case "registered":
        this.#unheard.delete(event.node);
        this.#connected.add(event.node);
        this.#heardAt.set(event.node, now);
        this.#bad.set(event.node, badOf(event.inventory.gpus));
        return;
      case "heartbeat":
        this.#heardAt.set(event.node, now);
        if (event.heartbeat.hardwarePresent) this.#bad.set(event.node, badOf(event.heartbeat.gpus));
        return;
      case "shard_status":
      case "command_result":
        this.#heardAt.set(event.node, now);
        return;
      case "stream_closed":
        this.#connected.delete(event.node);
        return;
      case "cordon":
        this.#closed.add(event.node);
        return;
      case "drain":
        this.#closed.add(event.node);
        this.excuseNode(event.node);
        return;
      case "uncordon":
        this.#closed.delete(event.node);
        return;
      case "forget_node":
        if (this.#connected.has(event.node)) return;
        this.#unheard.delete(event.node);
        this.#closed.delete(event.node);
        return;
      case "scale":
      case "clear_scale":
        this.#excusedModels.add(event.model);
        return;
      case "restart":
      case "stop":
      case "stop_at_once":
        this.#excusedModels.add(this.#replicas.get(event.replica) ?? "");
        return;
      default:
        return;
    }
  }

  /** From here on, what runs of the model may be replaced or stopped. */
  excuseModel(model: string): void {
    this.#excusedModels.add(model);
  }

  /** The same for all models that were ever started on the node. */
  excuseNode(node: NodeId): void {
    for (const model of this.#modelsOn.get(node) ?? []) this.#excusedModels.add(model);
  }

  /** What control has not heard of for so long may be judged lost. */
  excuseSilent(now: EpochMs): void {
    for (const node of this.#modelsOn.keys()) {
      const heardAt = this.#heardAt.get(node) ?? this.#startedAt;
      if (now - heardAt >= this.#timings.lostMs - SLACK_MS) this.excuseNode(node);
    }
  }

  /** A model whose engines, number or presence an edit changes may be stopped for it. */
  edited(before: Catalog, next: Catalog): void {
    for (const model of before.models) {
      const after = next.models.find((each) => each.name === model.name);
      const same = after !== undefined && after.scaling.max >= model.scaling.max &&
        prints(model) === prints(after);
      if (!same) this.excuseModel(model.name);
    }
    this.scales(next);
  }

  /** What scales on demand is stopped when there is none. */
  scales({ models }: Catalog): void {
    for (const { name, scaling } of models) {
      if (scaling.min !== scaling.max) this.excuseModel(name);
    }
  }

  excuseEverything(): void {
    this.#everything = true;
  }

  /** Whether something was done that may end this shard's replica. */
  excused(spec: Plain<ShardSpec>): boolean {
    return this.#everything || this.#excusedModels.has(spec.model);
  }

  /** Notes a start that control sends, and says of what it is the first, or that it was elsewhere. */
  firstStart(
    { shard, replica, node, spec }: StartShard,
  ): { readonly ofShard: boolean; readonly ofReplica: boolean; readonly elsewhere: boolean } {
    const place = [node, spec.portFirst, ...spec.gpus.map((gpu) => gpu.uuid)].join(" ");
    const before = this.#shards.get(shard);
    const first = {
      ofShard: before === undefined,
      ofReplica: !this.#replicas.has(replica),
      elsewhere: before !== undefined && before !== place,
    };
    const models = this.#modelsOn.get(node) ?? new Set();
    this.#modelsOn.set(node, models.add(spec.model));
    this.#shards.set(shard, place);
    this.#replicas.set(replica, spec.model);
    return first;
  }

  /** Known nodes that control has not heard since it began, while it has to wait for them. */
  unheard(now: EpochMs): readonly NodeId[] {
    return now >= this.#startedAt + this.#timings.settleMs ? [] : [...this.#unheard];
  }

  /** Why nothing new may start on the node; undefined when it may. */
  whyClosed(node: NodeId, now: EpochMs): string | undefined {
    if (this.#closed.has(node)) return "is closed by an operator";
    if (!this.#connected.has(node)) return "has no open stream";
    const silentMs = now - (this.#heardAt.get(node) ?? -Infinity);
    return silentMs >= this.#timings.unreachableMs ? `is silent for ${silentMs} ms` : undefined;
  }

  /** Control was told that the GPU is broken. */
  knownBad(node: NodeId, gpu: number): boolean {
    return this.#bad.get(node)?.has(gpu) === true;
  }
}

function prints(model: Model): string {
  return model.profiles.map((each) => fingerprint(model, each)).join();
}

function badOf(
  gpus: readonly { readonly index: number; readonly problems: readonly unknown[] }[],
): ReadonlySet<number> {
  return new Set(gpus.filter((gpu) => gpu.problems.length > 0).map((gpu) => gpu.index));
}
