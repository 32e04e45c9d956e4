/**
 * Who may use what and what was used, for one time of leading: read from the store at its beginning,
 * so that nothing that was used is forgotten by a restart.
 */
import { spawnTask } from "@heddle/common/task";
import type { UsageSettings } from "./core/usage/usage_config.ts";
import { Budgets } from "./core/usage/budgets.ts";
import { Calendar } from "./core/usage/periods.ts";
import type { StoreRecord } from "./core/store_record.ts";
import type { TenancyRecord } from "./core/tenancy/stored.ts";
import type { Realm } from "./edge/caller.ts";
import type { ControlMetrics } from "./edge/control_metrics.ts";
import type { Store } from "./edge/store/store.ts";
import { type RouterTenancyCalls, routerTenancyCalls } from "./edge/tenancy/router_calls.ts";
import { Sharing } from "./edge/tenancy/sharing.ts";
import { recordOf } from "./edge/tenancy/tenancy_rows.ts";
import { type TenancyCalls, tenancyRpc } from "./edge/tenancy/tenancy_rpc.ts";
import { Tenants } from "./edge/tenancy/tenants.ts";
import { Ledger } from "./edge/usage/ledger.ts";
import type { WatchHub } from "./edge/watch/hub.ts";
import type { TenancyChange } from "./edge/watch/tenancy_feed.ts";

/** How often what only time changes is looked at: keys that expire, periods that end. */
const TICK_MS = 1_000;

export interface TenancyPart {
  readonly operators: TenancyCalls;
  readonly routers: RouterTenancyCalls;
  /** Keys that are kept. */
  readonly keys: () => number;
  /** Limits of which routers hold shares. */
  readonly sharedLimits: () => number;
  /** Nothing is looked at any more. */
  end(): void;
}

/** What a time of leading begins with. */
export interface StartingTenancy {
  readonly records: readonly TenancyRecord[];
  readonly used: ReadonlyMap<string, number>;
  readonly budgets: Budgets;
  readonly calendar: Calendar;
}

/** Throws `system` when the store does not answer, `failed_precondition` for what a newer control stored. */
export async function readTenancy(
  store: Store,
  { timeZone }: UsageSettings,
): Promise<StartingTenancy> {
  const calendar = new Calendar(timeZone);
  const budgets = new Budgets(calendar);
  const { rows, used } = await store.loadTenancy();
  const records = rows.map(recordOf);
  budgets.seed(await store.spent(budgets.periods(Date.now())));
  return { records, used, budgets, calendar };
}

export interface TenancyOptions {
  readonly settings: UsageSettings;
  readonly realm: Realm;
  readonly store: Store;
  readonly hub: WatchHub;
  readonly persist: (records: readonly StoreRecord[]) => Promise<void>;
  readonly metrics: Pick<ControlMetrics, "recorded">;
}

/** Tells the hub of all keys and limits, and answers about them until it ends. */
export function startTenancy(
  { records, used, budgets, calendar }: StartingTenancy,
  { settings, realm, store, hub, persist, metrics }: TenancyOptions,
): TenancyPart {
  const now = Date.now;
  const publish = (change: TenancyChange) => hub.publishTenancy(change);
  const tenants = new Tenants({ records, budgets, persist, publish, now });
  const keep = { recordsMs: settings.keepRecordsMs, hoursMs: settings.keepHoursMs };
  const ledger = new Ledger({ store, tenants, calendar, used, keep, metrics, now });
  const sharing = new Sharing({
    tenants,
    recall: (routers, scopes) => hub.recall(routers, scopes),
    now: () => performance.now(),
  });
  hub.serve(tenants, tenants.everything);
  const timer = setInterval(() => {
    tenants.tick();
    spawnTask("usage", () => ledger.tick());
  }, TICK_MS);
  return {
    operators: tenancyRpc({ realm, store, tenants, ledger, calendar, now }),
    routers: routerTenancyCalls({ realm, store, tenants, ledger, sharing, calendar, now }),
    keys: () => tenants.tenancy.keys.size,
    sharedLimits: () => sharing.size,
    end: () => clearInterval(timer),
  };
}
