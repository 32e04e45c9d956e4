/** Scopes, keys and limits as operators see them, on the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  EffectiveLimitSchema,
  KeySettings as WireSettings,
  KeySettingsSchema,
  KeyViewSchema,
  ScopeViewSchema,
} from "@heddle/proto/gen/tenancy";
import { chainOf, keyState, pathOf } from "../../core/tenancy/chain.ts";
import { type Effective, effectiveLimits } from "../../core/tenancy/effective.ts";
import type { KeySettings } from "../../core/tenancy/rules.ts";
import type { StoredKey, StoredScope, Tenancy } from "../../core/tenancy/stored.ts";
import type { Tenants } from "./tenants.ts";
import { encodeKind, encodeLimits, encodePeriod, list } from "./wire.ts";

type Init<T extends typeof ScopeViewSchema | typeof KeyViewSchema | typeof EffectiveLimitSchema> =
  MessageInitShape<T>;

/** `keys` counts those that are not revoked, by every scope that they are in. */
export function encodeScope(
  tenants: Tenants,
  { id, scope, keys }: {
    readonly id: string;
    readonly scope: StoredScope;
    readonly keys: ReadonlyMap<string, number>;
  },
): Init<typeof ScopeViewSchema> {
  const { tenancy } = tenants;
  const standing = tenants.standing(id);
  return {
    id,
    kind: encodeKind(scope.kind),
    name: scope.name,
    parentId: scope.parent,
    path: pathOf(tenancy, id),
    routingProfile: scope.routingProfile,
    band: scope.band,
    limits: encodeLimits(tenancy.limits.get(id) ?? {}),
    ...(standing === undefined ? {} : {
      spentMicro: BigInt(standing.spentMicro),
      refillMs: BigInt(Math.ceil(standing.refillMs)),
    }),
    keys: keys.get(id) ?? 0,
    createdAtS: seconds(scope.createdAt),
    createdBy: scope.createdBy,
  };
}

/** Keys that are not revoked, by every scope that they are in. */
export function countKeys(tenancy: Tenancy): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of tenancy.keys.values()) {
    if (key.revokedAt !== undefined) continue;
    for (const { id } of chainOf(tenancy, key.project)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** Never the hashes. */
export function encodeKey(
  tenancy: Tenancy,
  { id, key, lastUsed, now }: {
    readonly id: string;
    readonly key: StoredKey;
    readonly lastUsed: number | undefined;
    readonly now: number;
  },
): Init<typeof KeyViewSchema> {
  return {
    id,
    settings: encodeSettings(key),
    projectId: key.project,
    projectPath: pathOf(tenancy, key.project),
    secrets: key.secrets.map(({ shown, expiresAt }) => ({
      prefix: shown,
      ...(expiresAt === undefined ? {} : { expiresAtS: seconds(expiresAt) }),
    })),
    state: keyState(key, now),
    createdAtS: seconds(key.createdAt),
    createdBy: key.createdBy,
    ...(lastUsed === undefined ? {} : { lastUsedS: seconds(lastUsed) }),
    limits: encodeLimits(tenancy.limits.get(id) ?? {}),
    ...(key.revokedAt === undefined ? {} : { revokedAtS: seconds(key.revokedAt) }),
  };
}

function encodeSettings(key: KeySettings): MessageInitShape<typeof KeySettingsSchema> {
  const { name, band, routingProfile, mayExplain } = key;
  return {
    name,
    ...list("models", key.models),
    ...list("paths", key.paths),
    ...list("addresses", key.addresses),
    band,
    routingProfile,
    mayExplain,
  };
}

export function decodeSettings(wire: WireSettings | undefined): KeySettings {
  return {
    name: wire?.name ?? "",
    ...(wire?.models === undefined ? {} : { models: [...wire.models.items] }),
    ...(wire?.paths === undefined ? {} : { paths: [...wire.paths.items] }),
    ...(wire?.addresses === undefined ? {} : { addresses: [...wire.addresses.items] }),
    band: wire?.band ?? "",
    routingProfile: wire?.routingProfile ?? "",
    mayExplain: wire?.mayExplain ?? false,
  };
}

/** The limits that hold for a scope or key, with where each comes from. */
export function encodeEffective(
  tenants: Tenants,
  id: string,
  now: number,
): Init<typeof EffectiveLimitSchema>[] {
  const spentOf = (scope: string, period: "day" | "month") =>
    tenants.budgets.spent(scope, period, now);
  return effectiveLimits(tenants.tenancy, id, spentOf).map((limit) => ({
    name: limit.name,
    scopeKind: encodeKind(limit.from.kind),
    scopeId: limit.from.id,
    scopeName: limit.from.name,
    ...amountOf(tenants, limit, now),
  }));
}

function amountOf(tenants: Tenants, limit: Effective, now: number) {
  switch (limit.name) {
    case "models":
      return { models: [...limit.models] };
    case "budget":
      return {
        value: BigInt(limit.value),
        period: encodePeriod(limit.period),
        spentMicro: BigInt(limit.spent),
        refillMs: BigInt(Math.ceil(tenants.budgets.endOf(limit.period, now) - now)),
      };
    default:
      return { value: BigInt(limit.value) };
  }
}

function seconds(ms: number): bigint {
  return BigInt(Math.floor(ms / 1_000));
}
