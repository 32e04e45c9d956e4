/** Keys and scopes for tests, with honest defaults. */
import type { TenantKey } from "../tenancy/key.ts";
import type { Budget, Scope } from "../tenancy/scope.ts";
import type { Ask } from "./limiter.ts";

export interface FakeLimits {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly slots?: number;
  readonly budget?: Partial<Budget>;
}

export function fakeScope(id: string, limits: FakeLimits, kind: Scope["kind"] = "key"): Scope {
  const { rpm, tpm, slots, budget } = limits;
  return {
    id,
    kind,
    name: id,
    limits: { requestsPerMinute: rpm, tokensPerMinute: tpm, concurrentRequests: slots },
    budget: budget === undefined ? undefined : {
      limitMicro: 1_000_000,
      period: "day",
      spentMicro: 0,
      exhausted: false,
      refillsAt: Infinity,
      ...budget,
    },
  };
}

export function fakeKey(...scopeIds: readonly string[]): TenantKey {
  return {
    id: "key-1",
    name: "a key",
    organisation: "acme",
    project: "chat",
    projectId: "project-1",
    prefixes: ["sk-heddle-abcdef"],
    scopeIds,
    models: undefined,
    paths: undefined,
    networks: undefined,
  };
}

let leases = 0;

export function fakeAsk(key: TenantKey, more: Partial<Ask> = {}): Ask {
  return { leaseId: `lease-${++leases}`, key, tokens: 10, costMicro: 1_000, ...more };
}
