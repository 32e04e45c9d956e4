/** Operators' side of tenancy: who may use what, and what was used. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import { ScopeKind, type TenancyService } from "@heddle/proto/gen/tenancy";
import { exists, findHolder, findScope } from "../../core/tenancy/chain.ts";
import {
  type By,
  createScope,
  deleteScope,
  revokeKey,
  rotateKey,
  setLimits,
  setPrice,
  updateKey,
} from "../../core/tenancy/change.ts";
import type { StoredLimits } from "../../core/tenancy/stored.ts";
import type { Calendar } from "../../core/usage/periods.ts";
import { operatorName, type Realm } from "../caller.ts";
import type { UsageStore } from "../store/store.ts";
import { checkAddresses } from "./addresses.ts";
import {
  countKeys,
  decodeSettings,
  encodeEffective,
  encodeKey,
  encodeScope,
} from "./encode_tenancy.ts";
import { listKeys } from "./key_list.ts";
import type { Ledger } from "../usage/ledger.ts";
import { expiryOf, issueKey, newId, newSecret } from "./new_key.ts";
import type { Tenants } from "./tenants.ts";
import { answerUsage } from "../usage/usage_answers.ts";
import { decodeLimits, decodePrice, encodeLimits, encodePrice, wirePrice } from "./wire.ts";

export interface TenancyRpcOptions {
  readonly realm: Realm;
  readonly store: Pick<UsageStore, "usage" | "backup">;
  readonly tenants: Tenants;
  readonly ledger: Pick<Ledger, "lastUsed">;
  readonly calendar: Calendar;
  /** The time on the wall. */
  readonly now: () => number;
}

/** All calls but Restore, which ends the time of leading that these belong to. */
export type TenancyCalls = Omit<ServiceImpl<typeof TenancyService>, "restore">;

/** The handlers. */
export function tenancyRpc(options: TenancyRpcOptions): TenancyCalls {
  return { ...scopeCalls(options), ...keyCalls(options), ...usageCalls(options) };
}

type Calls<Name extends keyof TenancyCalls> = Pick<TenancyCalls, Name>;

function scopeCalls(
  { realm, tenants, now }: TenancyRpcOptions,
): Calls<"createScope" | "listScopes" | "deleteScope" | "setLimits" | "getLimits"> {
  const { tenancy } = tenants;
  const by = (context: HandlerContext) => operatorName(context, realm);
  return {
    async createScope(request, context) {
      const scope = { ...request, id: newId(kindOf(request.kind)), kind: kindOf(request.kind) };
      const who = by(context);
      await tenants.change((all, at) => createScope(all, scope, { by: who, now: at }));
      return { scope: scopeView(tenants, scope.id) };
    },
    listScopes(request, context) {
      by(context);
      const inside = request.in === "" ? "" : findScope(tenancy, "list", { name: request.in });
      const kind = request.kind === ScopeKind.UNSPECIFIED ? undefined : kindOf(request.kind);
      const keys = countKeys(tenancy);
      const views = [...tenancy.scopes].filter(([id, scope]) =>
        exists(tenancy, id) && (kind === undefined || scope.kind === kind)
      ).map(([id, scope]) => encodeScope(tenants, { id, scope, keys }));
      const path = inside === "" ? "" : `${scopeView(tenants, inside).path}/`;
      return {
        scopes: views.filter((view) => view.id === inside || (view.path ?? "").startsWith(path))
          .sort((a, b) => (a.path ?? "") < (b.path ?? "") ? -1 : 1),
      };
    },
    async deleteScope({ scope, yes }, context) {
      const who = by(context);
      const { records } = await tenants.change((all, at) =>
        deleteScope(all, { name: scope, yes }, { by: who, now: at })
      );
      return { revokedKeys: records.filter(({ kind }) => kind === "key").length };
    },
    async setLimits({ scope, limits, keep }, context) {
      const who = by(context);
      let before: StoredLimits = {};
      const { records } = await tenants.change((all, at) => {
        const id = findHolder(all, "set limits", scope);
        before = all.limits.get(id) ?? {};
        const after = { ...kept(before, keep), ...decodeLimits(limits) };
        return setLimits(all, id, after, { by: who, now: at });
      });
      const [record] = records;
      const after = record?.kind === "limits" ? record.value ?? {} : {};
      return { before: encodeLimits(before), after: encodeLimits(after) };
    },
    getLimits({ scope }, context) {
      by(context);
      return {
        limits: encodeEffective(tenants, findHolder(tenancy, "show limits", scope), now()),
      };
    },
  };
}

function keyCalls(
  { realm, tenants, ledger, now }: TenancyRpcOptions,
): Calls<"createKey" | "listKeys" | "updateKey" | "rotateKey" | "revokeKey"> {
  const who = (context: HandlerContext, at: number): By => ({
    by: operatorName(context, realm),
    now: at,
  });
  const view = (id: string) => keyView(tenants, ledger, { id, now: now() });
  return {
    async createKey(request, context) {
      const { id, secret } = await issueKey(tenants, {
        project: request.project,
        settings: checkAddresses("create a key", decodeSettings(request.settings)),
        limits: decodeLimits(request.limits),
        expiresInMs: Number(request.expiresInMs),
        by: operatorName(context, realm),
      });
      return { key: view(id), secret };
    },
    listKeys(request, context) {
      who(context, 0);
      const { ids, more } = listKeys(tenants.tenancy, request, now());
      return { keys: ids.map(view), more };
    },
    async updateKey({ key, settings }, context) {
      const next = checkAddresses(`update the key`, decodeSettings(settings));
      const { records } = await tenants.change((all, at) =>
        updateKey(all, { name: key, settings: next }, who(context, at))
      );
      return { key: view(idOf(records)) };
    },
    async rotateKey({ key, overlapMs, expiresInMs }, context) {
      const made = newSecret();
      const { records } = await tenants.change((all, at) => {
        const secret = { ...made.stored, ...expiryOf(Number(expiresInMs), at) };
        const overlap = Number(overlapMs);
        return rotateKey(all, { name: key, secret, overlapMs: overlap }, who(context, at));
      });
      return { key: view(idOf(records)), secret: made.text };
    },
    async revokeKey({ key, reason }, context) {
      const { records } = await tenants.change((all, at) =>
        revokeKey(all, { name: key, reason: reason.slice(0, 500) }, who(context, at))
      );
      return { key: view(idOf(records)) };
    },
  };
}

function usageCalls(
  { realm, store, tenants, calendar, now }: TenancyRpcOptions,
): Calls<"setPrice" | "listPrices" | "queryUsage" | "backup"> {
  const by = (context: HandlerContext) => operatorName(context, realm);
  return {
    async setPrice({ model, price }, context) {
      const who = by(context);
      let before: ReturnType<typeof tenants.tenancy.prices.get>;
      await tenants.change((all, at) => {
        before = all.prices.get(model);
        return setPrice(all, { model, price: decodePrice(price) }, { by: who, now: at });
      });
      return before === undefined ? {} : { before: encodePrice(before) };
    },
    listPrices(_request, context) {
      by(context);
      const { prices } = tenants.tenancy;
      return { prices: [...prices].sort().map(([model, price]) => wirePrice(model, price)) };
    },
    async queryUsage(request, context) {
      by(context);
      const { tenancy } = tenants;
      return await answerUsage(request, { store, tenancy, calendar, now: now() });
    },
    async *backup(_request, context) {
      by(context);
      for await (const chunk of store.backup()) yield { chunk };
    },
  };
}

function scopeView(tenants: Tenants, id: string) {
  const scope = tenants.tenancy.scopes.get(id);
  if (scope === undefined) throw new HeddleError("not_found", `There is no "${id}" any more`);
  return encodeScope(tenants, { id, scope, keys: countKeys(tenants.tenancy) });
}

function keyView(
  { tenancy }: Tenants,
  ledger: Pick<Ledger, "lastUsed">,
  { id, now }: { readonly id: string; readonly now: number },
) {
  const key = tenancy.keys.get(id);
  if (key === undefined) throw new HeddleError("not_found", `There is no key "${id}" any more`);
  return encodeKey(tenancy, { id, key, lastUsed: ledger.lastUsed(id), now });
}

function idOf(records: readonly { readonly id: string }[]): string {
  return records[0]?.id ?? "";
}

function kindOf(kind: ScopeKind): "organisation" | "team" | "project" {
  switch (kind) {
    case ScopeKind.ORGANISATION:
      return "organisation";
    case ScopeKind.TEAM:
      return "team";
    case ScopeKind.PROJECT:
      return "project";
    default:
      throw new HeddleError("invalid_input", "Want an organisation, a team or a project");
  }
}

/** Limits that stay, by the names that `GetLimits` uses. */
function kept(before: StoredLimits, names: readonly string[]): StoredLimits {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, budgetMicro, budgetPeriod } =
    before;
  return {
    ...(names.includes("requests_per_minute") ? { requestsPerMinute } : {}),
    ...(names.includes("tokens_per_minute") ? { tokensPerMinute } : {}),
    ...(names.includes("concurrent_requests") ? { concurrentRequests } : {}),
    ...(names.includes("budget") ? { budgetMicro, budgetPeriod } : {}),
    ...(names.includes("models") ? { models: before.models } : {}),
  };
}
