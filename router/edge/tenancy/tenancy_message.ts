/** Keys, scopes and prices of control's Watch messages, as the book takes them. */
import { Buffer } from "node:buffer";
import type { WatchResponse } from "@heddle/proto/gen/router";
import {
  BudgetPeriod,
  type Key,
  type Price as WirePrice,
  type Scope as WireScope,
  ScopeKind,
} from "@heddle/proto/gen/tenancy";
import { errorText } from "@heddle/proto/error";
import { BANDS } from "../../core/admission/band.ts";
import { type Network, parseNetwork } from "../../core/request/network.ts";
import type { KnownKey, TenancyUpdate } from "../../core/tenancy/book.ts";
import { type Price, PRICE_BY_DEFAULT } from "../../core/tenancy/price.ts";
import type { Budget, Scope } from "../../core/tenancy/scope.ts";

export interface DecodedTenancy {
  readonly update: TenancyUpdate;
  /** Keys that make no sense and were left out, in words for the log. */
  readonly problems: readonly string[];
}

/** Whether a message says anything of keys, limits or prices, or belongs to a snapshot of them. */
export function isTenancy(message: WatchResponse): boolean {
  return message.snapshot || message.keys.length > 0 || message.removedKeys.length > 0 ||
    message.scopes.length > 0 || message.removedScopes.length > 0 ||
    message.prices.length > 0 || message.removedPrices.length > 0;
}

/** Reads one message that arrived at `now`, in ms of the monotonic clock. */
export function decodeTenancy(message: WatchResponse, now: number): DecodedTenancy {
  const keys: KnownKey[] = [];
  const problems: string[] = [];
  for (const wire of message.keys) {
    try {
      keys.push(decodeKey(wire));
    } catch (error) {
      problems.push(`Cannot use key "${wire.id}": ${errorText(error)}`);
    }
  }
  return {
    update: {
      snapshot: message.snapshot,
      snapshotEnd: message.snapshotEnd,
      keys,
      removedKeys: message.removedKeys,
      scopes: message.scopes.map((scope) => decodeScope(scope, now)),
      removedScopes: message.removedScopes,
      prices: message.prices.map(({ model, price }) => [model, decodePrice(price)] as const),
      removedPrices: message.removedPrices,
    },
    problems,
  };
}

function decodeKey(wire: Key): KnownKey {
  const band = BANDS.find((each) => each === wire.band);
  if (band === undefined && wire.band !== "") throw new Error(`its band is "${wire.band}"`);
  const [organisation] = wire.scopeIds;
  return {
    id: wire.id,
    caller: {
      id: wire.id,
      tenant: organisation ?? wire.projectId,
      band,
      bandCeiling: band,
      routingProfile: wire.routingProfile === "" ? undefined : wire.routingProfile,
      mayExplain: wire.mayExplain,
      key: {
        id: wire.id,
        name: wire.name,
        organisation: wire.organisation,
        project: wire.project,
        projectId: wire.projectId,
        prefixes: wire.secrets.map(({ prefix }) => prefix),
        scopeIds: wire.scopeIds,
        models: wire.models === undefined ? undefined : new Set(wire.models.items),
        paths: wire.paths?.items,
        networks: wire.addresses?.items.map(decodeNetwork),
      },
    },
    secrets: wire.secrets.map(({ sha256, expiresAtS }) => ({
      hash: Buffer.from(sha256.buffer, sha256.byteOffset, sha256.length).toString("hex"),
      expiresAtS: expiresAtS === undefined ? undefined : Number(expiresAtS),
    })),
  };
}

function decodeNetwork(text: string): Network {
  const network = parseNetwork(text);
  if (network === undefined) throw new Error(`it has the address "${text}"`);
  return network;
}

const KINDS: Readonly<Record<ScopeKind, Scope["kind"]>> = {
  // What a newer control calls otherwise still limits.
  [ScopeKind.UNSPECIFIED]: "key",
  [ScopeKind.ORGANISATION]: "organisation",
  [ScopeKind.TEAM]: "team",
  [ScopeKind.PROJECT]: "project",
  [ScopeKind.KEY]: "key",
};

const PERIODS: Readonly<Record<BudgetPeriod, Budget["period"]>> = {
  [BudgetPeriod.UNSPECIFIED]: "for_ever",
  [BudgetPeriod.DAY]: "day",
  [BudgetPeriod.MONTH]: "month",
};

function decodeScope({ id, kind, name, limits, budget }: WireScope, now: number): Scope {
  return {
    id,
    kind: KINDS[kind],
    name,
    limits: {
      requestsPerMinute: numberOf(limits?.requestsPerMinute),
      tokensPerMinute: numberOf(limits?.tokensPerMinute),
      concurrentRequests: limits?.concurrentRequests,
    },
    budget: limits?.budgetMicro === undefined ? undefined : {
      limitMicro: Number(limits.budgetMicro),
      period: PERIODS[limits.budgetPeriod],
      spentMicro: Number(budget?.spentMicro ?? 0n),
      exhausted: budget?.exhausted ?? false,
      refillsAt: budget === undefined || budget.refillMs === 0n
        ? Infinity
        : now + Number(budget.refillMs),
    },
  };
}

function decodePrice(price: WirePrice | undefined): Price {
  const basis = price?.basis;
  switch (basis?.case) {
    case "tokens":
      return {
        kind: "tokens",
        promptMicro: Number(basis.value.promptMicro),
        cachedMicro: Number(basis.value.cachedMicro),
        completionMicro: Number(basis.value.completionMicro),
      };
    case "gpuSecondMicro":
      return { kind: "gpu_second", micro: Number(basis.value) };
    case "requestMicro":
      return { kind: "request", micro: Number(basis.value) };
    case undefined:
      return PRICE_BY_DEFAULT;
  }
}

function numberOf(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}
