/** What operators ask about weights, and have nodes do with them. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { InspectSourceRequest, WeightsService, WeightsWant } from "@heddle/proto/gen/weights";
import { findModel, type Model } from "../../core/catalog.ts";
import { sourceProblem } from "../../core/catalog/source.ts";
import { sourceHint } from "../../core/facts/source_hint.ts";
import { catalogEntry } from "../../core/fitting/catalog_entry.ts";
import { fitOnClasses, fleetClasses } from "../../core/fitting/classes.ts";
import { gpuNeeds } from "../../core/fitting/memory.ts";
import type { EpochMs } from "../../core/ids.ts";
import { sameWant, wantOf } from "../../core/placing/weights.ts";
import type { Audit } from "../../core/store_record.ts";
import { userOf } from "../../core/weights/unused.ts";
import type { Node, World } from "../../core/world.ts";
import { modelName, unknownName } from "../admin/known_name.ts";
import type { NodeRequests } from "../node_requests.ts";
import { inspectOn, inspectPath } from "./inspect_on.ts";
import { removeOn } from "./remove_on.ts";

/** A node answers a prefetch at once. */
const PREFETCH_MS = 15_000;

export interface WeightsRpcOptions {
  /** Throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  readonly world: () => World;
  readonly requests: Pick<NodeRequests, "ask">;
  /** Writes into the audit trail. */
  readonly record: (audit: Audit) => Promise<void>;
  readonly now: () => EpochMs;
}

export function weightsRpc(options: WeightsRpcOptions): ServiceImpl<typeof WeightsService> {
  const { by, world } = options;
  return {
    listWeights(_request, context) {
      by(context);
      return { weights: listOf(world()) };
    },
    async prefetchWeights({ model, nodes }, context) {
      by(context);
      return { nodes: await prefetch(options, modelOf(world(), model), nodes) };
    },
    async removeWeights({ node, folder }, context) {
      const who = by(context);
      return { freedBytes: await remove(options, { node, folder, by: who }) };
    },
    async inspectSource(request, context) {
      by(context);
      return await inspect(options, request);
    },
  };
}

function listOf(world: World) {
  const models = world.catalog.catalog.models;
  return [...world.nodes.values()].sort(byName).flatMap(({ name: node, inventory }) =>
    (inventory.weights?.weights ?? []).map(({ want, shardIds, ...weights }) => ({
      node,
      weights: { ...weights, shardIds: [...shardIds], ...wantMessage(want) },
      models: models.filter((model) => {
        const own = wantOf(model, "");
        return own !== undefined && want !== undefined && sameWant(own, want);
      }).map(({ name }) => name),
    }))
  );
}

async function remove(
  { world, requests, record, now }: WeightsRpcOptions,
  { node, folder, by }: { readonly node: string; readonly folder: string; readonly by: string },
): Promise<bigint> {
  const { inventory } = demandConnected(world(), "remove weights", node);
  const user = userOf(world(), node, folder);
  if (user !== undefined) {
    const told = inventory.weights?.weights.some((each) => each.folder === folder) ?? false;
    const why = told
      ? `shard ${user} uses it: stop it first`
      : `the node has told of no such folder, and shard ${user} may use it: stop it first, or ` +
        "try again once heddle weights list shows what it fetched";
    throw new HeddleError(
      "failed_precondition",
      `Cannot remove ${folder} on node "${node}": ${why} (in_use)`,
    );
  }
  const freed = await removeOn(requests, node, folder);
  const subject = `${node}/${folder}`;
  await record({
    kind: "audit",
    at: now(),
    by,
    action: "remove_weights",
    subject,
    reason: `${freed} bytes freed`,
  });
  return freed;
}

async function prefetch({ world, requests }: WeightsRpcOptions, model: Model, given: string[]) {
  const now = world();
  const want = wantOf(model, sourceHint(now, model).version);
  if (want === undefined) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot prefetch ${model.name}: its source ${model.source} is not fetched by nodes; ` +
        "hf:// and https:// are",
    );
  }
  const nodes = given.length > 0
    ? given.map((name) => demandConnected(now, "prefetch weights", name))
    : [...now.nodes.values()].filter((node) => couldRun(node, model)).sort(byName);
  if (nodes.length === 0) {
    const text =
      `Cannot prefetch ${model.name}: no connected node could run a profile of it; why: ` +
      `heddle explain ${model.name}. Nodes that are named (--nodes) fetch it all the same`;
    throw new HeddleError("failed_precondition", text);
  }
  const value = { ...want, include: [...want.include], exclude: [...want.exclude] };
  return await Promise.all(nodes.map(async ({ name: node }) => {
    try {
      const { reason, message } = await requests.ask(
        node,
        { case: "fetchWeights", value },
        PREFETCH_MS,
      );
      return reason === ""
        ? { node, outcome: message || "fetching", message: "" }
        : { node, outcome: reason, message };
    } catch (error) {
      return { node, outcome: "unavailable", message: errorText(error) };
    }
  }));
}

async function inspect({ world, requests }: WeightsRpcOptions, request: InspectSourceRequest) {
  const now = world();
  const { want } = request;
  if (want === undefined || want.source === "") {
    throw new HeddleError("invalid_input", "Cannot inspect: the request names no source");
  }
  const wrong = sourceProblem(want.source);
  if (wrong !== undefined) {
    throw new HeddleError("invalid_input", `Cannot inspect ${want.source}: ${wrong}`);
  }
  const { node, facts } = await read(now, requests, { want, asked: request.node });
  const needs = gpuNeeds(facts);
  const inventories = [...now.nodes.values()].map(({ inventory }) => inventory);
  const classes = fitOnClasses(facts, needs, fleetClasses(inventories));
  return {
    facts,
    node,
    sizes: needs.map(({ tp, problem, memoryBytes, kvBytesPerToken }) => ({
      tp,
      problem,
      memoryBytes: BigInt(memoryBytes),
      ...(kvBytesPerToken === undefined ? {} : { kvBytesPerToken: BigInt(kvBytesPerToken) }),
    })),
    classes: classes.map(({ gpuClass, memoryMib, gpusMax, contexts }) => ({
      gpuClass,
      memoryMib: BigInt(memoryMib),
      gpusMax,
      contexts: contexts.map(({ tp, tokens }) => ({
        tp,
        ...(tokens === undefined ? {} : { tokens: BigInt(tokens) }),
      })),
    })),
    catalogEntry: catalogEntry(facts, classes),
  };
}

/** What a source holds, as one node says it: the one that is asked for, else any that can. */
async function read(
  world: World,
  requests: WeightsRpcOptions["requests"],
  { want, asked }: { readonly want: WeightsWant; readonly asked: string },
) {
  const nodes = asked === ""
    ? connectedNodes(world, want.source)
    : [demandConnected(world, "inspect a source", asked).name];
  if (want.source.startsWith("/")) return await inspectPath(requests, nodes, want);
  const [node = ""] = nodes;
  return { node, facts: await inspectOn(requests, node, want) };
}

/** All of them, of a path those first that told of it: a node looks for new files now and then. */
function connectedNodes(world: World, source: string): readonly string[] {
  const path = source.replace(/\/+$/, "");
  const connected = [...world.nodes.values()].filter((node) => node.connected).sort(byName);
  const [having, others] = [true, false].map((has) =>
    connected.filter(({ inventory }) =>
      inventory.modelFiles.some((each) => each.path === path) === has
    )
  );
  const names = [...having ?? [], ...others ?? []].map(({ name }) => name);
  if (names.length > 0) return names;
  throw new HeddleError("unavailable", `Cannot inspect ${source}: no node is connected to read it`);
}

function couldRun({ connected, inventory }: Node, model: Model): boolean {
  return connected &&
    model.profiles.some(({ gpu_class: gpuClass, engine }) =>
      inventory.engines.some(({ name }) => name === engine) &&
      (gpuClass === undefined || inventory.gpus.some((gpu) => gpu.gpuClass === gpuClass))
    );
}

function modelOf(world: World, nameOrAlias: string): Model {
  const found = findModel(world.catalog.catalog, nameOrAlias);
  if (found !== undefined) return found;
  const name = modelName(world, "prefetch weights", nameOrAlias);
  throw new HeddleError(
    "failed_precondition",
    `Cannot prefetch ${name}: it left the catalog and only runs any more`,
  );
}

function demandConnected(world: World, action: string, name: string): Node {
  const node = world.nodes.get(name);
  if (node === undefined) throw unknownName({ action, noun: "node", name }, world.nodes.keys());
  if (node.connected) return node;
  throw new HeddleError("unavailable", `Cannot ${action}: node "${name}" is not connected`);
}

function wantMessage(want: ReturnType<typeof wantOf>) {
  if (want === undefined) return {};
  return { want: { ...want, include: [...want.include], exclude: [...want.exclude] } };
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}
