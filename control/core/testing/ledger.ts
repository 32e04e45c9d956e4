/**
 * What was done to a simulated fleet and what control was told, kept apart from control's own account
 * of it. Invariants ask it what control had a right to do.
 */
import type { Plain } from "@heddle/proto/plain";
import type { ShardSpec } from "@heddle/proto/gen/types";
import { type Catalog, EMPTY_CATALOG, type Model } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import type { Event } from "../event.ts";
import type { EpochMs, NodeId, ReplicaId, ShardId } from "../ids.ts";
import type { StartShard } from "../plan.ts";
import type { Timings } from "../timings.ts";
import type { Remembered } from "../world.ts";
import type { FakeNode } from "./fake_node.ts";
import { Permanence } from "./permanence.ts";

/** A pass may look a little later than this ledger. */
const SLACK_MS = 500;

type Labels = Readonly<Record<string, string>>;

/** What control may choose nodes by. Replaced as a whole, so that it can be kept. */
interface Choice {
  readonly catalog: Catalog;
  /** Labels that operators put on nodes. */
  readonly labels: ReadonlyMap<NodeId, Labels>;
}

export class Ledger {
  /** When the last fault was injected. */
  quietSince: EpochMs = 0;
  readonly permanence = new Permanence();
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
  /** What each replica was placed by. */
  readonly #choices = new Map<ReplicaId, Choice>();
  readonly #nodes: readonly FakeNode[];
  #choice: Choice = { catalog: EMPTY_CATALOG, labels: new Map() };
  #everything = false;
  #startedAt: EpochMs = 0;
  #unheard = new Set<NodeId>();

  constructor(timings: Timings, nodes: readonly FakeNode[]) {
    this.#timings = timings;
    this.#nodes = nodes;
  }

  /** Control began anew with what was stored. */
  began(now: EpochMs, { knownNodes, decisions, catalog }: Remembered): void {
    this.#startedAt = now;
    this.#unheard = new Set(knownNodes);
    this.#choice = { catalog: catalog.catalog, labels: decisions.labels };
    this.permanence.began(catalog.catalog, new Set(knownNodes));
    this.scales(catalog.catalog);
    this.#connected.clear();
    this.#heardAt.clear();
    this.#bad.clear();
    this.#closed.clear();
    for (const node of decisions.nodes.keys()) this.#closed.add(node);
  }

  /** Control was given an event. */
  told(event: Event, now: EpochMs): void {
    this.permanence.told(event);
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
      case "label":
        return this.#label(
          event.node,
          { ...this.#choice.labels.get(event.node), ...event.set },
          event,
        );
      case "forget_node":
        if (this.#connected.has(event.node)) return;
        this.permanence.forgotten(event.node);
        this.#label(event.node, {}, { remove: [] });
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
    this.permanence.edited(next, (name) => printsOf(before, name) !== printsOf(next, name));
    this.#choice = { ...this.#choice, catalog: next };
    this.scales(next);
  }

  /** Control places a replica: from here on it may be started where it was placed. */
  placed(replica: ReplicaId): void {
    this.#choices.set(replica, this.#choice);
  }

  /** The node's own labels, under those that operators put on it. */
  labelsOf(node: NodeId, { labels }: Pick<Choice, "labels"> = this.#choice): Labels {
    const own = this.#nodes.find(({ name }) => name === node)?.shape.labels;
    return { ...own, ...labels.get(node) };
  }

  /** What the node lacked of the profile's selector when the replica was placed; undefined: nothing. */
  unselected({ replica, node, spec }: StartShard): string | undefined {
    const choice = this.#choices.get(replica) ?? this.#choice;
    const profile = choice.catalog.models.find(({ name }) => name === spec.model)?.profiles
      .find(({ name }) => name === spec.profile);
    return lacking(profile?.node_selector ?? {}, this.labelsOf(node, choice));
  }

  #label(node: NodeId, next: Labels, { remove }: { readonly remove: readonly string[] }): void {
    const kept = Object.entries(next).filter(([key]) => !remove.includes(key));
    const labels = new Map(this.#choice.labels).set(node, Object.fromEntries(kept));
    this.#choice = { ...this.#choice, labels };
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

  /** A model of the catalog with that source. */
  modelOfSource(source: string): string | undefined {
    return this.#choice.catalog.models.find((model) => model.source === source)?.name;
  }

  /** The node has registered with this control, and its stream is open. */
  hasStream(node: NodeId): boolean {
    return this.#connected.has(node);
  }

  /** Control was told that the GPU is broken. */
  knownBad(node: NodeId, gpu: number): boolean {
    return this.#bad.get(node)?.has(gpu) === true;
  }
}

/** The first label that is wanted and not there, as an operator writes it. */
export function lacking(selector: Labels, labels: Labels): string | undefined {
  const missing = Object.entries(selector).find(([key, value]) => labels[key] !== value);
  return missing?.join("=");
}

function printsOf({ models }: Catalog, name: string): string | undefined {
  const model = models.find((each) => each.name === name);
  return model === undefined ? undefined : prints(model);
}

function prints(model: Model): string {
  return model.profiles.map((each) => fingerprint(model, each)).join();
}

function badOf(
  gpus: readonly { readonly index: number; readonly problems: readonly unknown[] }[],
): ReadonlySet<number> {
  return new Set(gpus.filter((gpu) => gpu.problems.length > 0).map((gpu) => gpu.index));
}
