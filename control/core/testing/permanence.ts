/**
 * What has failed for good in a simulated fleet and may not be tried again yet, by the promise that
 * operators are given: a profile that is at fault, until it, the engine's versions on the nodes or
 * its weights change; a node that is, until its machine restarts, or its engines, its problems or its
 * weights change. Kept from what nodes said and what failed on them, and not from control's record.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Heartbeat } from "@heddle/proto/gen/agent";
import type { Inventory, ShardSpec } from "@heddle/proto/gen/types";
import type { Catalog } from "../catalog.ts";
import { fingerprint, profileOf } from "../catalog/fingerprint.ts";
import type { Event } from "../event.ts";
import type { NodeId } from "../ids.ts";

/** A place to try: a profile of a model, on a node. */
export interface Trial {
  readonly model: string;
  readonly profile: string;
  readonly node: NodeId;
}

/** A failure that an agent called permanent. */
export interface GoodReason {
  readonly reason: string;
  /** The only node at fault; absent: the profile is. */
  readonly node?: NodeId;
}

type Inventories = Pick<Plain<Inventory>, "engines" | "gpus" | "weights">;

interface Told extends Inventories {
  readonly bootId: string;
}

interface Failed extends GoodReason {
  readonly model: string;
  readonly profile: string;
  /** Nodes that control had not heard then: it is news what they tell. */
  readonly without: ReadonlySet<NodeId>;
  /** What it depends on, as text. */
  readonly circumstance: string;
}

export class Permanence {
  readonly #nodes = new Map<NodeId, Told>();
  /** Known to this control, and not heard by it. */
  #unheard = new Set<NodeId>();
  #catalog: Catalog = { models: [] };
  #failed: readonly Failed[] = [];
  #backup: readonly Failed[] = [];

  /** Control began anew. What nodes that it knows have told holds until they tell something else. */
  began(catalog: Catalog, known: ReadonlySet<NodeId>): void {
    this.#catalog = catalog;
    for (const node of this.#nodes.keys()) if (!known.has(node)) this.#nodes.delete(node);
    this.#unheard = new Set(known);
  }

  /** The store is empty. */
  lost(): void {
    this.#failed = [];
  }

  /** A copy of the store is kept. */
  backUp(): void {
    this.#backup = this.#failed;
  }

  /** The copy is what is stored: what has failed since is not known. */
  restored(): void {
    this.#failed = this.#backup;
  }

  /** Control was given an event. */
  told(event: Event): void {
    switch (event.kind) {
      case "registered": {
        const { bootId, inventory: { engines, gpus, weights } } = event;
        const told = { bootId, engines, gpus, ...(weights === undefined ? {} : { weights }) };
        this.#nodes.set(event.node, told);
        this.#unheard.delete(event.node);
        return;
      }
      case "heartbeat":
        return this.#beat(event.node, event.heartbeat);
      case "retry":
        this.#failed = this.#failed.filter(({ model }) => model !== event.model);
        return;
      default:
        return;
    }
  }

  /** An operator gave the node up: when it is back, control has never seen it. */
  forgotten(node: NodeId): void {
    this.#nodes.delete(node);
    this.#unheard.delete(node);
    this.#failed = this.#failed.filter((each) => each.node !== node);
  }

  /** What failed may be what was mended, where any profile of a model needs another engine. */
  edited(next: Catalog, changed: (model: string) => boolean): void {
    this.#failed = this.#failed.filter(({ model }) => !changed(model));
    this.#catalog = next;
  }

  /** A replica failed because of this shard, which its agent has given up for good. */
  failed(spec: Plain<ShardSpec>, { reason, node }: GoodReason): void {
    const model = this.#catalog.models.find(({ name }) => name === spec.model);
    const profile = model === undefined ? undefined : profileOf(model, spec.fingerprint);
    if (profile === undefined) return;
    const where = node === undefined ? {} : { node };
    const without = new Set(this.#unheard);
    const failed = { model: spec.model, profile: profile.name, reason, ...where, without };
    this.#failed = [
      ...this.#failed.filter((each) =>
        each.model !== failed.model || each.profile !== failed.profile || each.node !== failed.node
      ),
      { ...failed, circumstance: this.#circumstance(failed) },
    ];
  }

  /** Why that must not be tried; undefined: something has changed, or it never failed for good. */
  why({ model, profile, node }: Trial): string | undefined {
    const failed = this.#failed.find((each) =>
      each.model === model && each.profile === profile &&
      (each.node === undefined || each.node === node) &&
      each.circumstance === this.#circumstance(each)
    );
    return failed?.reason;
  }

  #beat(
    node: NodeId,
    { engines, enginesPresent, gpus, hardwarePresent, weights }: Plain<Heartbeat>,
  ) {
    const before = this.#nodes.get(node);
    if (before === undefined) return;
    this.#nodes.set(node, {
      ...before,
      ...(enginesPresent ? { engines } : {}),
      ...(hardwarePresent ? { gpus } : {}),
      ...(weights === undefined ? {} : { weights }),
    });
  }

  #circumstance(
    { model: name, profile: profileName, node, without }: Omit<Failed, "circumstance">,
  ): string {
    const model = this.#catalog.models.find((each) => each.name === name);
    const profile = model?.profiles.find((each) => each.name === profileName);
    if (model === undefined || profile === undefined) return "it left the catalog";
    const told = node === undefined
      ? this.#tellers(without).flatMap(([name, each]) => [
        ...enginesOf(each, profile.engine),
        ...weightsOf(each, model.source).map((bytes) => `${name} ${bytes}`),
      ])
      : this.#ofNode(node, profile.engine, model.source);
    return [fingerprint(model, profile), ...[...new Set(told)].sort()].join("\n");
  }

  #tellers(without: ReadonlySet<NodeId>): readonly (readonly [NodeId, Told])[] {
    return [...this.#nodes].filter(([node]) => !(without.has(node) && this.#unheard.has(node)));
  }

  #ofNode(node: NodeId, engine: string, source: string): readonly string[] {
    const told = this.#nodes.get(node);
    if (told === undefined) return [];
    const problems = told.gpus.flatMap((gpu) => gpu.problems.map(({ reason }) => reason));
    return [told.bootId, ...problems, ...enginesOf(told, engine), ...weightsOf(told, source)];
  }
}

function enginesOf({ engines }: Inventories, engine: string): readonly string[] {
  return engines.filter(({ name }) => name === engine).map(({ version }) => version);
}

/** Sizes of what is there of a source and whole. */
function weightsOf({ weights }: Inventories, source: string): readonly string[] {
  return (weights?.weights ?? []).filter(({ want, folder }) =>
    want?.source === source && folder !== ""
  ).map(({ sizeBytes }) => `${sizeBytes} bytes`);
}
