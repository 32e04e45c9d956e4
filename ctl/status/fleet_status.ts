/** Whether the fleet is well, what is not, and what to do about it. */
import type {
  GetCatalogResponse,
  GetVersionResponse,
  ModelView,
  NodeView,
  ReplicaView,
  RouterView,
} from "@heddle/proto/gen/admin";
import type { Problem } from "@heddle/proto/gen/types";
import { createClient, type Transport } from "@connectrpc/connect";
import { AdminService } from "@heddle/proto/gen/admin";
import { type NodeWeights, WeightsService } from "@heddle/proto/gen/weights";
import { decodeNodeState } from "@heddle/proto/node_state";
import { CALL_TIMEOUT_MS } from "../client.ts";
import type { Concern } from "./concern.ts";
import { replicaWord } from "./degradation.ts";
import { plural } from "./plural.ts";
import { reasonText } from "./reason_text.ts";
import { servingConcerns } from "./serving_concerns.ts";

/** Everything that `ctl status` asks control for. */
export interface Fleet {
  readonly version: GetVersionResponse;
  /** What is acted on, and how control's own file stands against it. */
  readonly catalog: GetCatalogResponse;
  readonly nodes: readonly NodeView[];
  readonly models: readonly ModelView[];
  readonly replicas: readonly ReplicaView[];
  readonly routers: readonly RouterView[];
  /** What nodes fetched, or could not fetch. */
  readonly weights: readonly NodeWeights[];
}

/** Asks for everything at once. */
export async function fetchFleet(transport: Transport): Promise<Fleet> {
  const client = createClient(AdminService, transport);
  const options = { timeoutMs: CALL_TIMEOUT_MS };
  const [version, catalog, { nodes }, { models }, { replicas }, { routers }, { weights }] =
    await Promise.all([
      client.getVersion({}, options),
      client.getCatalog({}, options),
      client.listNodes({}, options),
      client.listModels({}, options),
      client.listReplicas({}, options),
      client.listRouters({}, options),
      createClient(WeightsService, transport).listWeights({}, options),
    ]);
  return { version, catalog, nodes, models, replicas, routers, weights };
}

export interface FleetStatus {
  readonly nodes: Readonly<Record<string, number>>;
  readonly gpus: { readonly all: number; readonly free: number; readonly unusable: number };
  readonly models: { readonly all: number; readonly serving: number; readonly asleep: number };
  /** By state; "degraded" are those that are ready while a part of them is not well. */
  readonly replicas: Readonly<Record<string, number>>;
  readonly routers: { readonly all: number; readonly current: number };
  readonly inFlight: number;
  readonly waiting: number;
  readonly concerns: readonly Concern[];
}

export function statusOf(fleet: Fleet): FleetStatus {
  const { nodes, models, replicas, routers } = fleet;
  const gpus = nodes.flatMap((node) =>
    (node.inventory?.gpus ?? []).map((gpu) => ({
      unusable: gpu.problems.length > 0,
      used: node.usedGpus.includes(gpu.index),
    }))
  );
  const leased = routers.filter((router) => router.leased);
  return {
    nodes: counted(nodes.map((node) => decodeNodeState(node.state))),
    gpus: {
      all: gpus.length,
      free: gpus.filter((gpu) => !gpu.unusable && !gpu.used).length,
      unusable: gpus.filter((gpu) => gpu.unusable).length,
    },
    models: {
      all: models.length,
      serving: models.filter((model) => model.readyReplicas + model.attachedEngines > 0).length,
      asleep: models.filter(isAsleep).length,
    },
    replicas: counted(replicas.map(replicaWord)),
    routers: { all: leased.length, current: leased.filter((router) => router.current).length },
    inFlight: sum(leased.map((router) => router.inFlight)),
    waiting: sum(leased.map((router) => router.waiting)),
    concerns: [
      ...controlConcerns(fleet.version),
      ...catalogConcerns(fleet.catalog),
      ...routerConcerns(routers),
      ...models.flatMap(modelConcerns),
      ...servingConcerns(fleet),
      ...nodes.flatMap(nodeConcerns),
    ],
  };
}

/** Nothing runs, and nothing should. */
function isAsleep(model: ModelView): boolean {
  return model.readyReplicas + model.attachedEngines + model.desiredReplicas === 0;
}

function controlConcerns({ settled, name }: GetVersionResponse): readonly Concern[] {
  if (settled) return [];
  return [{
    subject: name === "" ? "control" : `control ${name}`,
    what: "waits for the nodes it knows to register before it starts or withdraws anything",
    next: "wait a minute; heddle nodes shows who is missing",
  }];
}

/** Complaints that are told; `heddle catalog` has them all. */
const COMPLAINTS_SHOWN = 3;

/**
 * The file that control follows cannot be acted on, or waits for a yes, and why: with file, line and
 * column. One that is older than what an operator applied is as it should be.
 */
export function catalogConcerns(catalog: GetCatalogResponse): readonly Concern[] {
  const { file, fileState, fileDetail, revision } = catalog;
  const stays = revision === 0n ? "no catalog was ever applied" : `revision ${revision} stays`;
  const why = complaintsOf(fileDetail);
  switch (fileState) {
    case "invalid":
      return [{
        subject: "catalog",
        what: `the file is invalid, ${stays}: ${why}`,
        next: `correct it; check it with: heddle plan ${file}`,
      }];
    case "unreadable":
      return [{
        subject: "catalog",
        what: `control cannot read ${file}, ${stays}: ${why}`,
        next: "the user that control runs as must be allowed to read it",
      }];
    case "waiting":
      return [{
        subject: "catalog",
        what: `the new text of ${file} waits, ${stays}: ${why}`,
        next: `see what it would come to: heddle plan ${file}`,
      }];
    default:
      return [];
  }
}

function complaintsOf(detail: string): string {
  const lines = detail.trimEnd().split("\n");
  const more = lines.length - COMPLAINTS_SHOWN;
  const shown = lines.slice(0, COMPLAINTS_SHOWN).join("; ");
  return more > 0 ? `${shown}; and ${more} more: heddle catalog` : shown;
}

function routerConcerns(routers: readonly RouterView[]): readonly Concern[] {
  if (!routers.some((router) => router.leased)) {
    return [{
      subject: "routers",
      what: routers.length === 0 ? "none has reported" : "every lease has ended",
      next: "is heddle-router@1 running, and can it reach control? its log says so",
    }];
  }
  return routers.filter((router) => router.leased && !router.current).map((router) => ({
    subject: `router ${router.name}`,
    what: "has not applied what control published last",
    next: "wait a moment; if it stays, look at the router's log",
  }));
}

function modelConcerns(model: ModelView): readonly Concern[] {
  if (model.paused) {
    return [{
      subject: `model ${model.name}`,
      what: "is paused by an operator",
      next: `heddle models resume ${model.name}`,
    }];
  }
  if (model.readyReplicas >= model.desiredReplicas) return [];
  const why = model.reason === "" ? "" : `: ${model.reason}`;
  return [{
    subject: `model ${model.name}`,
    what: `${model.readyReplicas} of ${plural(model.desiredReplicas, "replica")} ready${why}`,
    next: `heddle explain ${model.name}`,
  }];
}

function nodeConcerns(node: NodeView): readonly Concern[] {
  const state = decodeNodeState(node.state);
  const inventory = node.inventory;
  const parts: readonly (readonly [string, readonly Problem[]])[] = [
    ["", inventory?.problems ?? []],
    ...(inventory?.gpus ?? []).map((gpu) => [` GPU ${gpu.index}`, gpu.problems] as const),
    ...(inventory?.hcas ?? []).map((hca) => [` ${hca.name}:${hca.port}`, hca.problems] as const),
    ...(inventory?.engines ?? []).map((each) => [` engine ${each.name}`, each.problems] as const),
  ];
  // Of an attached engine its own concern says that it is lost: nobody forgets a node of it.
  const told = node.attached !== undefined && state === "lost";
  return [
    ...(told ? [] : stateConcern(node.name, state)),
    ...parts.flatMap(([part, problems]) =>
      problems.map((problem) => ({
        subject: `node ${node.name}${part}`,
        what: reasonText(problem.reason, problem.detail),
        next: problem.remedy,
      }))
    ),
  ];
}

function stateConcern(name: string, state: string): readonly Concern[] {
  const subject = `node ${name}`;
  switch (state) {
    case "unreachable":
      return [{
        subject,
        what: "is silent; what runs there goes on serving while it answers",
        next: "look at the machine, its network and heddle-agent",
      }];
    case "lost":
      return [{
        subject,
        what: "is lost; what ran there is rebuilt elsewhere where it fits",
        next: `repair it, or remove it: heddle nodes forget ${name}`,
      }];
    case "cordoned":
    case "drained":
      return [{
        subject,
        what: `is ${state}: nothing new is placed there`,
        next: `heddle uncordon ${name}`,
      }];
    default:
      return [];
  }
}

function counted(words: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
