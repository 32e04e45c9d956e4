/**
 * A control of its own for one case: it knows the keys that KEY, KEY1 and KEY2 stand for, and what
 * the case allows them. There is one router, so it gets all of every limit.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { apiKeyFrom, apiKeyHash } from "@heddle/common/api_key";
import { BudgetPeriod, type KeySchema, type LimitsSchema } from "@heddle/proto/gen/tenancy";
import { SharePool } from "../../control/core/tenancy/sharing/share_pool.ts";
import { type FakeControl, startFakeControl } from "../../router/edge/control/control_fake.ts";
import type { Case } from "./case_schema.ts";

export type KeyWish = Case["setup"]["key"];

const NAMES = ["KEY", "KEY1", "KEY2"];
const LIMIT_OF = ["", "requestsPerMinute", "tokensPerMinute", "concurrentRequests"] as const;

/** The key that a name stands for. */
export function caseKey(name: string): string {
  return apiKeyFrom(new Uint8Array(32).fill(NAMES.indexOf(name) + 1));
}

export async function startCaseControl(wish: KeyWish): Promise<FakeControl> {
  const control = await startFakeControl();
  const limits = limitsOf(wish);
  const pools = new Map<string, SharePool>();
  control.share(({ router, demands }) => ({
    routers: 1,
    grants: demands.flatMap((demand) => {
      const { scopeId, dimension } = demand;
      const member = LIMIT_OF[dimension];
      const limit = member === undefined || member === "" ? undefined : limits[member];
      if (limit === undefined) return [];
      const now = performance.now();
      const name = `${dimension} ${scopeId}`;
      const kind = member === "concurrentRequests" ? "slots" : "rate";
      const pool = pools.get(name) ??
        new SharePool(kind, Number(limit), { saved: Number(limit), now });
      pools.set(name, pool);
      const { share, credit } = pool.ask(router, demand, now);
      return [{ scopeId, dimension, share, credit, validityMs: 5_000 }];
    }),
  }));
  control.say({
    revision: { term: 1n, sequence: 1n },
    snapshot: true,
    snapshotEnd: true,
    settled: true,
    keys: NAMES.map((name) => keyOf(name, wish)),
    scopes: NAMES.map((name) => ({
      id: name,
      name,
      limits,
      ...(wish.budget === undefined ? {} : { budget: { exhausted: wish.budget === 0 } }),
    })),
  });
  return control;
}

function keyOf(name: string, { allowed, allowed_paths: paths }: KeyWish) {
  const secret = caseKey(name);
  return {
    id: name,
    secrets: [{ sha256: apiKeyHash(secret), prefix: secret.slice(0, 16) }],
    scopeIds: [name],
    ...(allowed === undefined ? {} : { models: { items: allowed } }),
    ...(paths === undefined ? {} : { paths: { items: paths } }),
  } satisfies Omit<MessageInitShape<typeof KeySchema>, "$typeName">;
}

function limitsOf({ rpm, tpm, concurrency, budget }: KeyWish) {
  return {
    ...(rpm === undefined ? {} : { requestsPerMinute: BigInt(rpm) }),
    ...(tpm === undefined ? {} : { tokensPerMinute: BigInt(tpm) }),
    ...(concurrency === undefined ? {} : { concurrentRequests: concurrency }),
    ...(budget === undefined
      ? {}
      : { budgetMicro: BigInt(budget * 1_000_000), budgetPeriod: BudgetPeriod.DAY }),
  } satisfies Omit<MessageInitShape<typeof LimitsSchema>, "$typeName">;
}
