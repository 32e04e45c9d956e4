/**
 * Routers' side of control: they watch what is published, report what they do, and wake models
 * that sleep.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import type { ReportRequest, RouterService, WakeResponse } from "@heddle/proto/gen/router";
import { decodeRevision } from "@heddle/proto/revision";
import { findModel } from "../core/catalog.ts";
import type { RouterEvent } from "../core/event.ts";
import type { World } from "../core/world.ts";
import { demandRouter, type Realm } from "./caller.ts";
import type { WatchHub } from "./watch/hub.ts";

export interface RouterRpcOptions {
  readonly realm: Realm;
  readonly hub: WatchHub;
  /** The single writer. `now` is its clock. */
  readonly loop: { dispatch(event: RouterEvent): Promise<void>; world(): World; now(): number };
}

/** The calls of RouterService that are about the fleet. */
export type FleetCalls = Pick<ServiceImpl<typeof RouterService>, "watch" | "report" | "wake">;

/** Their handlers. */
export function routerRpc({ realm, hub, loop }: RouterRpcOptions): FleetCalls {
  // Only a router's Watch says its version; its reports come over the same connection.
  const versions = new Map<string, string>();
  return {
    async *watch({ router, routerVersion }, context) {
      demandRouter(context, realm, router);
      versions.set(router, routerVersion);
      yield* hub.watch(router, context.signal);
    },
    async report(request, context) {
      demandRouter(context, realm, request.router);
      await loop.dispatch(reportOf(request, versions.get(request.router) ?? ""));
      return {
        leaseMs: loop.world().timings.routerLeaseMs,
        others: othersInFlight(loop.world(), request.router, loop.now()),
      };
    },
    async wake({ router, model }, context) {
      demandRouter(context, realm, router);
      const found = wakeOutcome(loop.world(), model);
      if (found.wake !== undefined) await loop.dispatch({ kind: "wake", model: found.wake });
      return found.answer;
    },
  };
}

function reportOf(request: ReportRequest, version: string): RouterEvent {
  return {
    kind: "router_report",
    router: request.router,
    version,
    instance: request.routerInstance,
    applied: decodeRevision(request.applied),
    replicas: new Map(request.replicas.map((each) => [each.replicaId, each])),
    models: new Map(request.models.map((each) => [each.model, each])),
  };
}

// What the other leased routers have at each replica, so that each can count the whole load.
function othersInFlight(world: World, router: string, now: number) {
  const others = new Map<string, { inFlight: number; reservedTokens: number }>();
  for (const other of world.routers.values()) {
    if (other.name === router || other.leaseUntil <= now) continue;
    for (const [replicaId, load] of other.replicas) {
      const sum = others.get(replicaId) ?? { inFlight: 0, reservedTokens: 0 };
      others.set(replicaId, {
        inFlight: sum.inFlight + load.inFlight,
        reservedTokens: sum.reservedTokens + load.reservedTokens,
      });
    }
  }
  return [...others].map(([replicaId, load]) => ({ replicaId, ...load }));
}

interface WakeOutcome {
  readonly answer: Pick<WakeResponse, "accepted" | "reason" | "detail">;
  /** Name of the model that is to be woken. */
  readonly wake?: string;
}

function wakeOutcome(world: World, nameOrAlias: string): WakeOutcome {
  const refused = (reason: string, detail: string) => ({
    answer: { accepted: false, reason, detail },
  });
  const model = findModel(world.catalog.catalog, nameOrAlias);
  if (model === undefined) {
    return refused("model_unknown", `The catalog has no model "${nameOrAlias}"`);
  }
  const paused = world.decisions.paused.get(model.name);
  if (paused !== undefined) {
    return refused("paused", `${paused.by} paused model "${model.name}": ${paused.reason}`);
  }
  const running = [...world.published.endpoints.values()]
    .some((endpoint) => endpoint.model === model.name && !endpoint.draining);
  const reason = running ? "already_running" : "";
  return { answer: { accepted: true, reason, detail: "" }, wake: model.name };
}
