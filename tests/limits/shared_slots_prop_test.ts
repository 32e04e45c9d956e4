/** Places for requests at one time, shared by three routers: never more than there are, and none lost. */
import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { SharePool } from "../../control/core/tenancy/sharing/share_pool.ts";
import { type Lease, Limiter } from "../../router/core/limits/limiter.ts";
import { fakeAsk, fakeKey, fakeScope } from "../../router/core/limits/limiter_fake.ts";
import { demandsOf, missingKey, takeGrants } from "../../router/core/limits/shares.ts";

const SCOPE = "project";
const ROUTERS = 3;
/** Routers ask every second; a share that is not asked for counts as taken for longer. */
const STEP_MS = 200;

const STEP = fc.record({
  router: fc.nat(ROUTERS - 1),
  starts: fc.nat(12),
  ends: fc.nat(12),
});

interface Site {
  readonly name: string;
  readonly limiter: Limiter;
  readonly held: Lease[];
}

function call(
  site: Site,
  pool: SharePool,
  how: { recalled: boolean; missing: number; now: number },
) {
  const { recalled, missing, now } = how;
  const idle: string[] = [];
  const wants = {
    recalled: new Set(recalled ? [SCOPE] : []),
    missing: new Map(missing > 0 ? [[missingKey(SCOPE, "concurrent"), missing]] : []),
  };
  for (const demand of demandsOf(site.limiter.states.values(), wants, now)) {
    const { idleAt, ...given } = pool.ask(site.name, demand, now);
    idle.push(...idleAt);
    const { dimension } = demand;
    const grant = { scopeId: SCOPE, dimension, ...given, budgetRemainingMicro: undefined };
    takeGrants(site.limiter, [grant], now);
  }
  return idle;
}

Deno.test("three routers never have more requests at one time than the limit, and use all of it", () => {
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 20 }),
    fc.array(STEP, { maxLength: 80 }),
    (limit, steps) => {
      const pool = new SharePool("slots", limit, { saved: 0, now: 0 });
      const scope = fakeScope(SCOPE, { slots: limit }, "project");
      const sites: Site[] = Array.from({ length: ROUTERS }, (_, index) => {
        const limiter = new Limiter((id) => id === SCOPE ? scope : undefined);
        limiter.share({ kind: "shared" });
        return { name: `router-${index}`, limiter, held: [] };
      });
      const all = () => sites.reduce((sum, { held }) => sum + held.length, 0);
      let now = 0;
      for (const { router, starts, ends } of steps) {
        const site = sites[router];
        if (site === undefined) throw new Error("There is no such router");
        now += STEP_MS;
        for (const lease of site.held.splice(0, ends)) {
          lease.end({ tokens: 0, costMicro: 0 }, now);
        }
        for (let n = 0; n < starts; n++) {
          const ask = fakeAsk(fakeKey(SCOPE), { tokens: 0 });
          let tried = site.limiter.reserve(ask, now);
          if (tried.kind === "short") {
            const idle = call(site, pool, { recalled: false, missing: 1, now });
            for (const other of sites) {
              if (idle.includes(other.name)) call(other, pool, { recalled: true, missing: 0, now });
            }
            if (idle.length > 0) call(site, pool, { recalled: false, missing: 1, now });
            tried = site.limiter.reserve(ask, now);
          }
          if (tried.kind === "reserved") site.held.push(tried.lease);
          else equal(all(), limit, `refused with ${all()} of ${limit} in use`);
          ok(all() <= limit, `${all()} of ${limit} in use`);
        }
        for (const each of sites) call(each, pool, { recalled: false, missing: 0, now });
      }
    },
  ));
});
