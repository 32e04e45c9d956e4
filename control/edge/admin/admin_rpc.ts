/** Operators' side of control: what there is, why, and their decisions. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import type { AdminService } from "@heddle/proto/gen/admin";
import { VERSION } from "@heddle/common/version";
import type { OperatorEvent } from "../../core/event.ts";
import { findModel } from "../../core/catalog.ts";
import { explainModel } from "../../core/views/explain.ts";
import { viewModels } from "../../core/views/models.ts";
import { viewNodes } from "../../core/views/nodes.ts";
import { viewReplicas } from "../../core/views/replicas.ts";
import { viewRouters } from "../../core/views/routers.ts";
import type { NodeView } from "../../core/views.ts";
import type { World } from "../../core/world.ts";
import { operatorName, type Realm } from "../caller.ts";
import type { LogRequests } from "../log_requests.ts";
import {
  encodeExplain,
  encodeModel,
  encodeNode,
  encodeReplica,
  encodeRouter,
} from "./encode_views.ts";
import { unknownName } from "./known_name.ts";
import { findLog } from "./log_source.ts";

/** Longest reason of a decision: it stands in tables. */
const REASON_CHARS_MAX = 500;

export interface AdminRpcOptions {
  readonly realm: Realm;
  readonly logs: LogRequests;
  /** The single writer. `now` is its clock. */
  readonly loop: { dispatch(event: OperatorEvent): void; world(): World; now(): number };
}

/** The handlers of AdminService. */
export function adminRpc(options: AdminRpcOptions): ServiceImpl<typeof AdminService> {
  const { loop, logs, realm } = options;
  const by = (context: HandlerContext) => operatorName(context, realm);
  return {
    getVersion(_request, context) {
      by(context);
      const { cluster, term, published } = loop.world();
      return { version: VERSION, cluster, term: BigInt(term), settled: published.settled };
    },
    listNodes(_request, context) {
      by(context);
      return { nodes: viewNodes(loop.world(), loop.now()).map(encodeNode) };
    },
    listModels(_request, context) {
      by(context);
      return { models: viewModels(loop.world(), loop.now()).map(encodeModel) };
    },
    listReplicas({ model }, context) {
      by(context);
      const name = model === "" ? undefined : modelName(loop.world(), "list replicas", model);
      const replicas = viewReplicas(loop.world(), loop.now())
        .filter((replica) => name === undefined || replica.model === name);
      return { replicas: replicas.map(encodeReplica) };
    },
    listRouters(_request, context) {
      by(context);
      return { routers: viewRouters(loop.world(), loop.now()).map(encodeRouter) };
    },
    explain({ model }, context) {
      by(context);
      const name = modelName(loop.world(), "explain", model);
      return encodeExplain(explainModel(loop.world(), name, loop.now()));
    },
    cordon({ node, reason }, context) {
      return { node: decide(options, { kind: "cordon", node, by: by(context), reason }) };
    },
    uncordon({ node }, context) {
      return { node: decide(options, { kind: "uncordon", node, by: by(context) }) };
    },
    drain({ node, reason }, context) {
      return { node: decide(options, { kind: "drain", node, by: by(context), reason }) };
    },
    async *readLogs(request, context) {
      by(context);
      const found = findLog(loop.world(), request);
      for await (const lines of logs.read(found, context.signal)) {
        yield { lines: lines.map((text) => ({ source: found.label, text })) };
      }
    },
  };
}

type NodeDecisionEvent = Extract<OperatorEvent, { kind: "cordon" | "drain" | "uncordon" }>;

function decide(options: AdminRpcOptions, event: NodeDecisionEvent) {
  if ("reason" in event && event.reason.length > REASON_CHARS_MAX) {
    const text = `Cannot ${event.kind} node "${event.node}": the reason is longer than ` +
      `${REASON_CHARS_MAX} characters`;
    throw new HeddleError("invalid_input", text);
  }
  findNode(options, event);
  options.loop.dispatch(event);
  return encodeNode(findNode(options, event));
}

function findNode({ loop }: AdminRpcOptions, event: NodeDecisionEvent): NodeView {
  const nodes = viewNodes(loop.world(), loop.now());
  const found = nodes.find(({ name }) => name === event.node);
  if (found !== undefined) return found;
  throw unknownName(
    { action: event.kind, noun: "node", name: event.node },
    nodes.map(({ name }) => name),
  );
}

function modelName(world: World, action: string, nameOrAlias: string): string {
  const { catalog } = world.catalog;
  const found = findModel(catalog, nameOrAlias);
  if (found !== undefined) return found.name;
  // One that left the catalog may still run.
  if ([...world.replicas.values()].some(({ model }) => model === nameOrAlias)) return nameOrAlias;
  throw unknownName(
    { action, noun: "model", name: nameOrAlias },
    catalog.models.flatMap(({ name, aliases }) => [name, ...aliases]),
  );
}
