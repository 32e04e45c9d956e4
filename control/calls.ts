/** Calls that go to whoever leads at their beginning, and end when that one does. */
import type { ServiceImpl } from "@connectrpc/connect";
import { logger } from "@heddle/common/log";
import type { RestoreRequest, TenancyService } from "@heddle/proto/gen/tenancy";
import type { CapacityService } from "@heddle/proto/gen/capacity";
import type { WeightsService } from "@heddle/proto/gen/weights";
import { capacityRpc } from "./edge/capacity/capacity_rpc.ts";
import { operatorName, type Realm } from "./edge/caller.ts";
import type { Store } from "./edge/store/store.ts";
import type { RouterTenancyCalls } from "./edge/tenancy/router_calls.ts";
import type { TenancyCalls } from "./edge/tenancy/tenancy_rpc.ts";
import { weightsRpc } from "./edge/weights/weights_rpc.ts";
import type { Seat } from "./seat.ts";

const log = logger("control");

/** How many records of the audit trail are counted after a restore, at most. */
const AUDIT_COUNTED = 100_000;

/** What routers call about tenancy. */
export function routerTenancyOf(seat: Seat): RouterTenancyCalls {
  const leader = () => seat.demand("unavailable").tenancy.routers;
  return {
    share: (request, context) => leader().share(request, context),
    recordUsage: (request, context) => leader().recordUsage(request, context),
    getOwnUsage: (request, context) => leader().getOwnUsage(request, context),
  };
}

/** What operators call about weights. */
export function weightsOf(seat: Seat, realm: Realm): ServiceImpl<typeof WeightsService> {
  const leader = () => seat.demand("failed_precondition");
  return weightsRpc({
    by: (context) => operatorName(context, realm),
    world: () => leader().loop.world(),
    requests: { ask: (node, ask, timeoutMs) => leader().requests.ask(node, ask, timeoutMs) },
    record: (audit) => leader().persist([audit]),
    now: () => leader().loop.now(),
  });
}

/** What operators measure, and what the fleet carries. */
export function capacityOf(
  seat: Seat,
  { realm, store }: { readonly realm: Realm; readonly store: Store },
): ServiceImpl<typeof CapacityService> {
  const leader = () => seat.demand("failed_precondition");
  return capacityRpc({
    by: (context) => operatorName(context, realm),
    loop: { world: () => leader().loop.world(), now: () => leader().loop.now() },
    measurements: () => store.measurements(),
    persist: (records) => leader().persist(records),
    wallClock: Date.now,
  });
}

/** What operators call about tenancy. */
export function tenancyOf(
  seat: Seat,
  { realm, store }: { readonly realm: Realm; readonly store: Store },
): ServiceImpl<typeof TenancyService> {
  const leader = (): TenancyCalls => seat.demand("failed_precondition").tenancy.operators;
  return {
    createScope: (request, context) => leader().createScope(request, context),
    listScopes: (request, context) => leader().listScopes(request, context),
    deleteScope: (request, context) => leader().deleteScope(request, context),
    setLimits: (request, context) => leader().setLimits(request, context),
    getLimits: (request, context) => leader().getLimits(request, context),
    createKey: (request, context) => leader().createKey(request, context),
    listKeys: (request, context) => leader().listKeys(request, context),
    updateKey: (request, context) => leader().updateKey(request, context),
    rotateKey: (request, context) => leader().rotateKey(request, context),
    revokeKey: (request, context) => leader().revokeKey(request, context),
    setPrice: (request, context) => leader().setPrice(request, context),
    listPrices: (request, context) => leader().listPrices(request, context),
    queryUsage: (request, context) => leader().queryUsage(request, context),
    async *backup(request, context) {
      yield* leader().backup(request, context);
    },
    async restore(requests, context) {
      const by = operatorName(context, realm);
      leader();
      await restore(seat, store, requests);
      const at = Date.now();
      await store.persist([
        { kind: "audit", at, by, action: "restore", subject: "store", reason: "" },
      ]);
      log.warning("The store was restored from a backup", { by });
      return { records: BigInt((await store.audit(AUDIT_COUNTED)).length) };
    },
  };
}

// Whatever comes of it: who leads afterwards does so with what is stored then.
async function restore(
  seat: Seat,
  store: Store,
  requests: AsyncIterable<RestoreRequest>,
): Promise<void> {
  try {
    await store.restore(chunksOf(requests));
  } finally {
    await seat.renew();
  }
}

async function* chunksOf(requests: AsyncIterable<RestoreRequest>) {
  for await (const { chunk } of requests) yield chunk;
}
