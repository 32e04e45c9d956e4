/** Routers' side of tenancy: shares of limits, what was used, and what a key's holder may know. */
import type { ServiceImpl } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import type { RouterService } from "@heddle/proto/gen/router";
import type { Calendar } from "../../core/usage/periods.ts";
import { demandRouter, type Realm } from "../caller.ts";
import type { UsageStore } from "../store/store.ts";
import type { Ledger } from "../usage/ledger.ts";
import { answerOwnUsage } from "../usage/usage_answers.ts";
import { encodeEffective } from "./encode_tenancy.ts";
import type { Sharing } from "./sharing.ts";
import type { Tenants } from "./tenants.ts";

/** Limits that one router may live by at a time: more than it has keys is a mistake. */
const DEMANDS_MAX = 1_000_000;

/** The calls of RouterService that are about who may use what. */
export type RouterTenancyCalls = Pick<
  ServiceImpl<typeof RouterService>,
  "share" | "recordUsage" | "getOwnUsage"
>;

export interface RouterTenancyOptions {
  readonly realm: Realm;
  readonly store: Pick<UsageStore, "usage">;
  readonly tenants: Tenants;
  readonly ledger: Ledger;
  readonly sharing: Sharing;
  readonly calendar: Calendar;
  readonly now: () => number;
}

/** Their handlers. */
export function routerTenancyCalls(options: RouterTenancyOptions): RouterTenancyCalls {
  const { realm, store, tenants, ledger, sharing, calendar, now } = options;
  return {
    async share(request, context) {
      demandRouter(context, realm, request.router);
      if (request.demands.length > DEMANDS_MAX) {
        throw new HeddleError("invalid_input", `Cannot share more than ${DEMANDS_MAX} limits`);
      }
      return await sharing.share(request, context.signal);
    },
    async recordUsage({ router, records }, context) {
      demandRouter(context, realm, router);
      return { duplicates: await ledger.record(router, records) };
    },
    async getOwnUsage({ router, keyId, sinceMs }, context) {
      demandRouter(context, realm, router);
      if (!tenants.tenancy.keys.has(keyId)) {
        throw new HeddleError("not_found", "Cannot show usage: there is no such key");
      }
      const { tenancy } = tenants;
      const about = { store, tenancy, calendar, now: now() };
      const rows = await answerOwnUsage(keyId, Number(sinceMs), about);
      return { rows, limits: encodeEffective(tenants, keyId, now()) };
    },
  };
}
