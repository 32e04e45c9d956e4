/**
 * What changed its state, remembered for operators who look: a bounded list of transitions of nodes,
 * replicas, models and routers, found by comparing what there is with what there was at the last
 * look. Nothing is stored; it begins anew with each time of leading.
 */
import { viewModels } from "../../core/views/models.ts";
import { viewNodes } from "../../core/views/nodes.ts";
import { viewEveryReplica } from "../../core/views/attached.ts";
import { replicaWord } from "../../core/views/replicas.ts";
import { viewRouters } from "../../core/views/routers.ts";
import type { NodeView, ReplicaView } from "../../core/views.ts";
import type { World } from "../../core/world.ts";
import type { EventItem } from "./wire.ts";

export const LOOK_EVERY_MS = 2_000;
/** How soon what a new leader begins with is taken for known. */
export const BEGIN_WITHIN_MS = 100;

/** What a person reads back, and some 100 kB. */
const EVENTS_MAX = 300;

/** Longest text of one event; the page of the thing itself has the rest. */
const TEXT_CHARS_MAX = 400;

/** How something is at one look. */
interface Facet {
  readonly kind: EventItem["kind"];
  readonly subject: string;
  /** A transition is a change of this. */
  readonly state: string;
  /** So is one of this, where the state stays the same and means something else. */
  readonly cause?: string;
  /** There only while something is wrong: begun when it comes, over when it goes. */
  readonly passing?: boolean;
  readonly why: string;
  readonly bad: boolean;
}

export class Happenings {
  #before: ReadonlyMap<string, Facet> | undefined;
  readonly #events = new Map<string, EventItem>();
  #count = 0;
  #term = 0;

  /**
   * Takes what there is for known when this control begins to lead, so that what comes right after is
   * news and does not wait for the next look.
   */
  begin(world: World | undefined, now: number): void {
    if (world !== undefined && world.term !== this.#term) this.look(world, now);
  }

  /** Compares with the last look. `world` is undefined while this control stands by. */
  look(world: World | undefined, now: number): void {
    if (world === undefined || world.term !== this.#term) this.#before = undefined;
    if (world === undefined) return;
    this.#term = world.term;
    const facets = facetsOf(world, now);
    if (this.#before !== undefined) this.#compare(this.#before, facets, now);
    this.#before = facets;
  }

  /** By a number that rises. */
  events(): Map<string, EventItem> {
    return new Map(this.#events);
  }

  #compare(
    before: ReadonlyMap<string, Facet>,
    facets: ReadonlyMap<string, Facet>,
    now: number,
  ): void {
    for (const [key, facet] of facets) {
      const old = before.get(key);
      if (old?.state === facet.state && old.cause === facet.cause) continue;
      const from = old === undefined || old.state === facet.state ? "" : `${old.state} → `;
      const why = facet.why === "" ? "" : `: ${facet.why}`;
      this.#add(facet, `${from}${facet.state}${why}`, now);
    }
    for (const [key, facet] of before) {
      if (facets.has(key)) continue;
      const words = facet.passing === true ? `${facet.state} is over` : `${facet.state} → gone`;
      this.#add({ ...facet, bad: false }, words, now);
    }
  }

  #add({ kind, subject, bad }: Facet, text: string, now: number): void {
    const cut = text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
    const id = String(++this.#count).padStart(9, "0");
    this.#events.set(id, { atMs: Math.round(now), kind, subject, text: cut, bad });
    for (const oldest of this.#events.keys()) {
      if (this.#events.size <= EVENTS_MAX) break;
      this.#events.delete(oldest);
    }
  }
}

function facetsOf(world: World, now: number): ReadonlyMap<string, Facet> {
  const facets: Facet[] = [
    ...viewNodes(world, now).map(({ name, state, decisionReason }) => ({
      kind: "node" as const,
      subject: name,
      state,
      why: state === "ready" ? "" : decisionReason,
      bad: state === "lost" || state === "unreachable",
    })),
    ...viewEveryReplica(world, now).map(replicaFacet),
    ...viewModels(world, now).map((model) => ({
      kind: "model" as const,
      subject: model.name,
      state: modelState(model),
      why: model.reason,
      bad: model.readyReplicas === 0 && model.desiredReplicas > 0,
    })),
    ...viewRouters(world, now).map(({ name, leased }) => ({
      kind: "router" as const,
      subject: name,
      state: leased ? "reporting" : "silent",
      why: "",
      bad: !leased,
    })),
  ];
  return new Map([
    ...facets.map((facet) => [`${facet.kind} ${facet.subject}`, facet] as const),
    ...problemFacets(world, now),
  ]);
}

function replicaFacet(view: ReplicaView): Facet {
  const { replicaId, shards, attached, reason } = view;
  const state = view.state === "ready" && attached?.state === "degraded"
    ? "degraded"
    : replicaWord(view);
  const cause = shards.find((shard) => shard.state === "degraded")?.reason;
  return {
    kind: "replica",
    subject: replicaId,
    state,
    // Of one that serves well it says what is going on, such as who restarts it.
    why: state === "ready" || state === "starting" ? "" : reason,
    bad: state === "failed" || state === "degraded",
    ...(cause === undefined ? {} : { cause }),
  };
}

/** Problems that come and go by themselves, within seconds under load: no news. */
const RESTLESS: ReadonlySet<string> = new Set(["gpu_throttled"]);

/** What agents say is wrong with their nodes: once for each kind, however many parts have it. */
function problemFacets(world: World, now: number): ReadonlyMap<string, Facet> {
  const facets = new Map<string, Facet>();
  for (const { name, inventory } of viewNodes(world, now)) {
    for (const { what, problem: { reason, detail } } of problemsOf(inventory)) {
      const key = `problem ${name} ${reason}`;
      if (RESTLESS.has(reason) || facets.has(key)) continue;
      facets.set(key, {
        kind: "node",
        subject: name,
        state: reason,
        why: [what, detail].filter((text) => text !== "").join(": "),
        bad: true,
        passing: true,
      });
    }
  }
  return facets;
}

function problemsOf(inventory: NodeView["inventory"]) {
  const { gpus = [], hcas = [], engines = [], problems = [] } = inventory ?? {};
  return [
    { what: "", problems },
    ...gpus.map(({ index, problems }) => ({ what: `GPU ${index}`, problems })),
    ...hcas.map(({ name, port, problems }) => ({ what: `${name} port ${port}`, problems })),
    ...engines.map(({ name, version, problems }) => ({ what: `${name} ${version}`, problems })),
  ].flatMap(({ what, problems }) => problems.map((problem) => ({ what, problem })));
}

function modelState(
  { readyReplicas, desiredReplicas, paused }: {
    readonly readyReplicas: number;
    readonly desiredReplicas: number;
    readonly paused: boolean;
  },
): string {
  return `${readyReplicas} of ${desiredReplicas} ready${paused ? ", paused" : ""}`;
}
