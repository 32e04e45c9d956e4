/** Keys, scopes and prices as routers are sent them. Pure. */
import { Buffer } from "node:buffer";
import { create } from "@bufbuild/protobuf";
import {
  type AllowList,
  AllowListSchema,
  BudgetPeriod,
  type BudgetState,
  BudgetStateSchema,
  type Key,
  KeySchema,
  KeySecretSchema,
  type Limits,
  LimitsSchema,
  type ModelPrice,
  ModelPriceSchema,
  type Price,
  PriceSchema,
  type Scope,
  ScopeKind,
  ScopeSchema,
} from "@heddle/proto/gen/tenancy";
import { chainOf, type Kind, stands } from "../../core/tenancy/chain.ts";
import { allowedModels } from "../../core/tenancy/effective.ts";
import type { Period, StoredLimits, StoredPrice, Tenancy } from "../../core/tenancy/stored.ts";
import type { BudgetStanding } from "../../core/usage/budgets.ts";

const KINDS = {
  organisation: ScopeKind.ORGANISATION,
  team: ScopeKind.TEAM,
  project: ScopeKind.PROJECT,
  key: ScopeKind.KEY,
} as const satisfies Record<Kind, ScopeKind>;

export function encodeKind(kind: Kind): ScopeKind {
  return KINDS[kind];
}

/** Undefined for what no router may accept any more: revoked, expired, deleted with its project. */
export function wireKey(tenancy: Tenancy, id: string, now: number): Key | undefined {
  const key = tenancy.keys.get(id);
  if (key === undefined || key.revokedAt !== undefined) return undefined;
  const chain = chainOf(tenancy, id);
  if (!stands(tenancy, chain)) return undefined;
  const secrets = key.secrets.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now);
  if (secrets.length === 0) return undefined;
  const project = tenancy.scopes.get(key.project);
  return create(KeySchema, {
    id,
    name: key.name,
    secrets: secrets.map(({ sha256, shown, expiresAt }) =>
      create(KeySecretSchema, {
        sha256: Buffer.from(sha256, "hex"),
        prefix: shown,
        ...(expiresAt === undefined ? {} : { expiresAtS: BigInt(Math.floor(expiresAt / 1_000)) }),
      })
    ),
    scopeIds: chain.map((link) => link.id),
    organisation: chain[0]?.name ?? "",
    project: project?.name ?? "",
    projectId: key.project,
    ...list("models", allowedModels(tenancy, chain)?.models),
    ...list("paths", key.paths),
    ...list("addresses", key.addresses),
    band: key.band === "" ? project?.band ?? "" : key.band,
    routingProfile: key.routingProfile === "" ? project?.routingProfile ?? "" : key.routingProfile,
    mayExplain: key.mayExplain,
  });
}

/** Undefined for one that limits nothing, or is gone. */
export function wireScope(
  tenancy: Tenancy,
  id: string,
  budget: BudgetStanding | undefined,
): Scope | undefined {
  const limits = tenancy.limits.get(id);
  const self = chainOf(tenancy, id).at(-1);
  if (limits === undefined || self === undefined) return undefined;
  return create(ScopeSchema, {
    id,
    kind: encodeKind(self.kind),
    name: self.name,
    limits: encodeLimits(limits),
    ...(budget === undefined ? {} : { budget: encodeBudget(budget) }),
  });
}

function encodeBudget(budget: BudgetStanding): BudgetState {
  const { spentMicro, exhausted, refillMs } = budget;
  return create(BudgetStateSchema, {
    spentMicro: BigInt(spentMicro),
    exhausted,
    refillMs: BigInt(Math.max(0, Math.ceil(refillMs))),
  });
}

export function wirePrice(model: string, price: StoredPrice): ModelPrice {
  return create(ModelPriceSchema, { model, price: encodePrice(price) });
}

export function encodePrice(price: StoredPrice): Price {
  const micro = (value: number) => BigInt(value);
  switch (price.basis) {
    case "tokens": {
      const { promptMicro, cachedMicro, completionMicro } = price;
      const value = {
        promptMicro: micro(promptMicro),
        cachedMicro: micro(cachedMicro),
        completionMicro: micro(completionMicro),
      };
      return create(PriceSchema, { basis: { case: "tokens", value } });
    }
    case "gpu_second":
      return create(PriceSchema, { basis: { case: "gpuSecondMicro", value: micro(price.micro) } });
    case "request":
      return create(PriceSchema, { basis: { case: "requestMicro", value: micro(price.micro) } });
  }
}

/** Undefined for a price without a basis. */
export function decodePrice(wire: Price | undefined): StoredPrice | undefined {
  const basis = wire?.basis;
  switch (basis?.case) {
    case "tokens":
      return {
        basis: "tokens",
        promptMicro: Number(basis.value.promptMicro),
        cachedMicro: Number(basis.value.cachedMicro),
        completionMicro: Number(basis.value.completionMicro),
      };
    case "gpuSecondMicro":
      return { basis: "gpu_second", micro: Number(basis.value) };
    case "requestMicro":
      return { basis: "request", micro: Number(basis.value) };
    default:
      return undefined;
  }
}

export function encodeLimits(limits: StoredLimits): Limits {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, budgetMicro } = limits;
  return create(LimitsSchema, {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute: BigInt(requestsPerMinute) }),
    ...(tokensPerMinute === undefined ? {} : { tokensPerMinute: BigInt(tokensPerMinute) }),
    ...(concurrentRequests === undefined ? {} : { concurrentRequests }),
    ...(budgetMicro === undefined ? {} : { budgetMicro: BigInt(budgetMicro) }),
    budgetPeriod: encodePeriod(limits.budgetPeriod),
    ...list("models", limits.models),
  });
}

export function decodeLimits(wire: Limits | undefined): StoredLimits {
  if (wire === undefined) return {};
  const period = decodePeriod(wire.budgetPeriod);
  return {
    ...(wire.requestsPerMinute === undefined
      ? {}
      : { requestsPerMinute: Number(wire.requestsPerMinute) }),
    ...(wire.tokensPerMinute === undefined
      ? {}
      : { tokensPerMinute: Number(wire.tokensPerMinute) }),
    ...(wire.concurrentRequests === undefined
      ? {}
      : { concurrentRequests: wire.concurrentRequests }),
    ...(wire.budgetMicro === undefined ? {} : { budgetMicro: Number(wire.budgetMicro) }),
    ...(period === undefined ? {} : { budgetPeriod: period }),
    ...(wire.models === undefined ? {} : { models: [...wire.models.items] }),
  };
}

export function encodePeriod(period: Period | undefined): BudgetPeriod {
  if (period === undefined) return BudgetPeriod.UNSPECIFIED;
  return period === "day" ? BudgetPeriod.DAY : BudgetPeriod.MONTH;
}

function decodePeriod(wire: BudgetPeriod): Period | undefined {
  if (wire === BudgetPeriod.DAY) return "day";
  return wire === BudgetPeriod.MONTH ? "month" : undefined;
}

/** A member that is absent where there is no list: an empty list allows nothing. */
export function list<Name extends string>(
  name: Name,
  items: readonly string[] | undefined,
): { [K in Name]?: AllowList } {
  if (items === undefined) return {};
  const member: { [K in Name]?: AllowList } = {};
  member[name] = create(AllowListSchema, { items: [...items] });
  return member;
}
