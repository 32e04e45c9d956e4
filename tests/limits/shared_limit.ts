/**
 * Three routers and a control that share one limit, on a clock of their own: the routers' real
 * limiters, control's real pool, and calls that take a few milliseconds.
 */
import { SharePool } from "../../control/core/tenancy/sharing/share_pool.ts";
import { Limiter } from "../../router/core/limits/limiter.ts";
import { fakeAsk, fakeKey, fakeScope } from "../../router/core/limits/limiter_fake.ts";
import {
  type Demanded,
  demandsOf,
  missingKey,
  takeGrants,
} from "../../router/core/limits/shares.ts";

export const SECOND_MS = 1_000;
const SCOPE = "project";
/** There and back; a recall takes three of them. */
const CALL_MS = 5;

export interface Run {
  /** When each request was admitted, and by whom. */
  readonly admitted: { readonly at: number; readonly router: number }[];
  /** Refusals while another router could have admitted a request. */
  readonly refusedWhileIdle: number;
  readonly refused: number;
}

/** Requests that arrive at a router in one second. */
export type Load = (router: number, second: number) => number;

interface Site {
  readonly limiter: Limiter;
  readonly name: string;
}

export class SharedLimit {
  readonly #limit: number;
  readonly #pool: SharePool;
  readonly #sites: readonly Site[];
  #now = 0;

  constructor(limit: number, routers: number) {
    this.#limit = limit;
    this.#pool = new SharePool("rate", limit, { saved: limit, now: 0 });
    const scope = fakeScope(SCOPE, { rpm: limit }, "project");
    this.#sites = Array.from({ length: routers }, (_, index) => {
      const limiter = new Limiter((id) => id === SCOPE ? scope : undefined);
      limiter.share({ kind: "shared" });
      return { limiter, name: `router-${index}` };
    });
  }

  /** Plays `seconds` of `load`, whose requests are spread over each second. */
  run(seconds: number, load: Load): Run {
    const admitted: { at: number; router: number }[] = [];
    let refused = 0;
    let refusedWhileIdle = 0;
    for (let second = 0; second < seconds; second++) {
      for (const { at, router } of this.#arrivals(second, load)) {
        this.#now = Math.max(this.#now, at);
        if (this.#request(router)) admitted.push({ at: this.#now, router });
        else {
          refused++;
          if (this.#idleElsewhere(router, (other) => load(other, second) > 0)) refusedWhileIdle++;
        }
      }
      this.#now = Math.max(this.#now, (second + 1) * SECOND_MS);
      for (const site of this.#sites) this.#call(site, new Map(), false);
    }
    return { admitted, refused, refusedWhileIdle };
  }

  #arrivals(second: number, load: Load) {
    return this.#sites.flatMap((_, router) => {
      const count = load(router, second);
      return Array.from({ length: count }, (_, index) => ({
        at: second * SECOND_MS + index * SECOND_MS / count,
        router,
      }));
    }).sort((a, b) => a.at - b.at);
  }

  #request(router: number): boolean {
    const site = this.#sites[router];
    if (site === undefined) throw new Error("There is no such router");
    const ask = fakeAsk(fakeKey(SCOPE), { tokens: 0 });
    site.limiter.ask(ask, this.#now);
    let tried = site.limiter.reserve(ask, this.#now);
    if (tried.kind === "short") {
      const missing = new Map<string, number>();
      for (const shortage of tried.shortages) {
        if (shortage.missing === 0) return false;
        missing.set(missingKey(SCOPE, "requests"), shortage.missing);
      }
      this.#call(site, missing, true);
      tried = site.limiter.reserve(ask, this.#now);
    }
    if (tried.kind === "short") return false;
    tried.lease.end({ tokens: 0, costMicro: 0 }, this.#now);
    return true;
  }

  /** As control does: what is short is asked back from those that have it, and answered after. */
  #call(site: Site, missing: ReadonlyMap<string, number>, atOnce: boolean): void {
    const wants = { recalled: new Set<string>(), missing };
    const demands = demandsOf(site.limiter.states.values(), wants, this.#now);
    for (const demand of demands) {
      this.#now += CALL_MS;
      const idleAt = this.#ask(site, demand);
      if (!atOnce || idleAt.length === 0) continue;
      for (const other of this.#sites) if (idleAt.includes(other.name)) this.#recall(other);
      this.#now += CALL_MS;
      const level = site.limiter.states.get(SCOPE)?.requests?.level(this.#now) ?? 0;
      const still = Math.max(0, 1 - level);
      this.#ask(site, { ...demand, credit: level, returned: 0, missing: still });
    }
  }

  #recall(site: Site): void {
    const wants = { recalled: new Set([SCOPE]), missing: new Map() };
    for (const demand of demandsOf(site.limiter.states.values(), wants, this.#now)) {
      this.#ask(site, demand);
    }
  }

  #ask(site: Site, demand: Demanded): readonly string[] {
    const { idleAt, ...given } = this.#pool.ask(site.name, demand, this.#now);
    const { scopeId, dimension } = demand;
    const grant = { scopeId, dimension, ...given, budgetRemainingMicro: undefined };
    takeGrants(site.limiter, [grant], this.#now);
    return idleAt;
  }

  #idleElsewhere(router: number, busy: (other: number) => boolean): boolean {
    return this.#sites.some(({ limiter }, index) =>
      index !== router && !busy(index) &&
      (limiter.states.get(SCOPE)?.requests?.left(this.#now) ?? 0) >= 1
    );
  }

  /** The fullest minute, as a multiple of the limit. */
  fullestMinute({ admitted }: Run): number {
    let most = 0;
    for (let from = 0, to = 0; from < admitted.length; from++) {
      const start = admitted[from]?.at ?? 0;
      while (to < admitted.length && (admitted[to]?.at ?? 0) - start < 60 * SECOND_MS) to++;
      most = Math.max(most, to - from);
    }
    return most / this.#limit;
  }
}
