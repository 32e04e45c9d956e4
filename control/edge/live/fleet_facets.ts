/** How nodes, replicas, models and routers are at one look. Pure. */
import { viewEveryReplica } from "../../core/views/attached.ts";
import { viewModels } from "../../core/views/models.ts";
import { viewNodes } from "../../core/views/nodes.ts";
import { replicaWord } from "../../core/views/replicas.ts";
import { viewRouters } from "../../core/views/routers.ts";
import type { ModelView, NodeView, ReplicaView, RouterView } from "../../core/views.ts";
import type { World } from "../../core/world.ts";
import type { Facet } from "./facet.ts";

export function fleetFacets(world: World, now: number): ReadonlyMap<string, Facet> {
  const facets: readonly Facet[] = [
    ...viewNodes(world, now).map(nodeFacet),
    ...viewEveryReplica(world, now).map(replicaFacet),
    ...viewModels(world, now).map(modelFacet),
    ...viewRouters(world, now).map(routerFacet),
  ];
  return new Map([
    ...facets.map((facet) => [`${facet.kind} ${facet.subject}`, facet] as const),
    ...problemFacets(world, now),
  ]);
}

/** What to do about a node that is away, by its state. */
const AWAY: Readonly<Record<string, (name: string) => string>> = {
  unreachable: () => "look at the machine, its network and heddle-agent",
  lost: (name) => `repair it, or remove it: heddle nodes forget ${name}`,
};

function nodeFacet({ name, state, decisionReason }: NodeView): Facet {
  const next = AWAY[state]?.(name);
  return {
    kind: "node",
    subject: name,
    state,
    why: state === "ready" ? "" : decisionReason,
    next: next ?? "",
    bad: next !== undefined,
  };
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
    next: replicaNext(view, state),
    bad: state === "failed" || state === "degraded",
    ...(cause === undefined ? {} : { cause }),
  };
}

function replicaNext({ replicaId, model, attached }: ReplicaView, state: string): string {
  if (state !== "failed" && state !== "degraded" && state !== "suspected") return "";
  if (attached !== undefined) return "look at its box, and at the log of heddle-attach there";
  return state === "failed"
    ? `heddle explain ${model}`
    : `heddle logs ${replicaId}; where it stays: heddle replicas restart ${replicaId}`;
}

function modelFacet(model: ModelView): Facet {
  const { name, readyReplicas, desiredReplicas, paused, reason } = model;
  const bad = readyReplicas === 0 && desiredReplicas > 0;
  return {
    kind: "model",
    subject: name,
    state: `${readyReplicas} of ${desiredReplicas} ready${paused ? ", paused" : ""}`,
    why: reason,
    next: bad ? `heddle explain ${name}` : "",
    bad,
  };
}

function routerFacet({ name, leased }: RouterView): Facet {
  return {
    kind: "router",
    subject: name,
    state: leased ? "reporting" : "silent",
    why: "",
    next: leased ? "" : "is heddle-router running there, and can it reach control? its log says so",
    bad: !leased,
  };
}

/** Problems that come and go by themselves, within seconds under load: no news. */
const RESTLESS: ReadonlySet<string> = new Set(["gpu_throttled"]);

/** What agents say is wrong with their nodes: once for each kind, however many parts have it. */
function problemFacets(world: World, now: number): ReadonlyMap<string, Facet> {
  const facets = new Map<string, Facet>();
  for (const { name, inventory } of viewNodes(world, now)) {
    for (const { part, problem: { reason, detail, remedy } } of problemsOf(inventory)) {
      const key = `problem ${name} ${reason}`;
      if (RESTLESS.has(reason) || facets.has(key)) continue;
      facets.set(key, {
        kind: "node",
        subject: name,
        state: reason,
        why: [part, detail].filter((text) => text !== "").join(": "),
        next: remedy,
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
    { part: "", problems },
    ...gpus.map(({ index, problems }) => ({ part: `GPU ${index}`, problems })),
    ...hcas.map(({ name, port, problems }) => ({ part: `${name} port ${port}`, problems })),
    ...engines.map(({ name, version, problems }) => ({ part: `${name} ${version}`, problems })),
  ].flatMap(({ part, problems }) => problems.map((problem) => ({ part, problem })));
}
