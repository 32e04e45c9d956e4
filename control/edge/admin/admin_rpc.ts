/** Operators' side of control: what there is, why, and their decisions. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AdminService } from "@heddle/proto/gen/admin";
import type { ShownCertificate } from "@heddle/common/identity";
import { VERSION } from "@heddle/common/version";
import type { CatalogApplied, OperatorEvent } from "../../core/event.ts";
import { explainModel } from "../../core/views/explain.ts";
import { viewEveryNode, viewEveryReplica } from "../../core/views/attached.ts";
import { viewModels } from "../../core/views/models.ts";
import { viewRouters } from "../../core/views/routers.ts";
import type { World } from "../../core/world.ts";
import { operatorName, type Realm } from "../caller.ts";
import type { CatalogFileStatus } from "../catalog_watch.ts";
import { daysLeft } from "../identity/days_left.ts";
import type { Standing } from "../lease/elector.ts";
import { whoLeads } from "../lease/standby.ts";
import type { LogRequests } from "../log_requests.ts";
import { applyText, catalogState, planText } from "./catalogs.ts";
import {
  encodeExplain,
  encodeModel,
  encodeNode,
  encodeReplica,
  encodeRouter,
} from "./encode_views.ts";
import { readFound } from "./follow_log.ts";
import { modelName } from "./known_name.ts";
import { operatorRpc, type OperatorRpcOptions } from "./operator_rpc.ts";

export interface AdminRpcOptions {
  readonly realm: Realm;
  readonly logs: Pick<LogRequests, "read">;
  /** The single writer. `now` is its clock. Throws, saying who does, while this control does not lead. */
  readonly loop: {
    dispatch(event: OperatorEvent | CatalogApplied): Promise<void>;
    world(): World;
    now(): number;
  };
  /** Where this control stands. `leadership` is undefined while `loop` throws. */
  readonly seat: {
    readonly name: string;
    readonly standing: Standing;
    readonly leadership: unknown;
  };
  /** From the store. Throws while this control does not lead. */
  readonly audit: OperatorRpcOptions["audit"];
  /** How control's catalog file stands. Throws while this control does not lead. */
  readonly catalogFile: () => CatalogFileStatus;
  /** What agents and routers show at this moment. */
  readonly certificates?: () => readonly ShownCertificate[];
  /** Told after an operator applied a catalog, so that an older file does not undo it. */
  readonly superseded: () => Promise<void>;
}

/** The handlers of AdminService. */
export function adminRpc(options: AdminRpcOptions): ServiceImpl<typeof AdminService> {
  const { loop, logs, realm } = options;
  const by = (context: HandlerContext) => operatorName(context, realm);
  return {
    getVersion(_request, context) {
      by(context);
      return versionOf(options);
    },
    listNodes(_request, context) {
      by(context);
      const shown = options.certificates?.() ?? [];
      const left = (name: string) =>
        leftOf(daysLeft(shown, { role: "agent", names: [name], now: Date.now() }));
      return {
        nodes: viewEveryNode(loop.world(), loop.now())
          .map((node) => ({ ...encodeNode(node), ...left(node.name) })),
      };
    },
    listModels(_request, context) {
      by(context);
      return { models: viewModels(loop.world(), loop.now()).map(encodeModel) };
    },
    listReplicas({ model }, context) {
      by(context);
      const name = model === "" ? undefined : modelName(loop.world(), "list replicas", model);
      const replicas = viewEveryReplica(loop.world(), loop.now())
        .filter((replica) => name === undefined || replica.model === name);
      return { replicas: replicas.map(encodeReplica) };
    },
    listRouters(_request, context) {
      by(context);
      const shown = options.certificates?.() ?? [];
      // As demandRouter has it: of all of a host's, or of each.
      const left = (name: string) => {
        const names = [name, name.split("/")[0] ?? name, name.replace("/", "-")];
        return leftOf(daysLeft(shown, { role: "router", names, now: Date.now() }));
      };
      return {
        routers: viewRouters(loop.world(), loop.now())
          .map((router) => ({ ...encodeRouter(router), ...left(router.name) })),
      };
    },
    explain({ model }, context) {
      by(context);
      const name = modelName(loop.world(), "explain", model);
      return encodeExplain(explainModel(loop.world(), name, loop.now()));
    },
    ...operatorRpc({ by, loop, audit: options.audit }),
    getCatalog({ text }, context) {
      by(context);
      return catalogState(loop.world(), options.catalogFile(), text);
    },
    async planCatalog(request, context) {
      by(context);
      return { plan: await planText(loop, request) };
    },
    async applyCatalog(request, context) {
      const answer = await applyText(loop, request, by(context));
      if (answer.applied) await options.superseded();
      return answer;
    },
    async *readLogs(request, context) {
      by(context);
      const reader = { world: () => loop.world(), now: () => loop.now(), logs };
      for await (const { label, lines } of readFound(reader, request, context.signal)) {
        yield { lines: lines.map((text) => ({ source: label, text })) };
      }
    },
  };
}

function leftOf(days: number | undefined) {
  return days === undefined ? {} : { certificateDaysLeft: days };
}

/** A standby answers this and nothing else: it says whom to ask. */
function versionOf({ seat, loop, realm }: AdminRpcOptions) {
  const { name, standing, leadership } = seat;
  const mine = { version: VERSION, cluster: realm.cluster, name };
  const unsure = standing.away === undefined || standing.sure ? "" : whoLeads(standing);
  if (leadership !== undefined) {
    const { term, published } = loop.world();
    return { ...mine, unsure, leading: true, term: BigInt(term), settled: published.settled };
  }
  const { leader } = standing;
  return {
    ...mine,
    unsure,
    leading: false,
    term: BigInt(leader?.term ?? 0),
    leader: leader?.name ?? "",
    leaderAddress: leader?.address ?? "",
  };
}
