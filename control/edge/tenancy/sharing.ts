/**
 * Hands out shares of limits to routers. A router that is short asks at once; then those that hold
 * what it needs and do not use it are asked to give it back, and it is answered a moment later.
 */
import { create } from "@bufbuild/protobuf";
import {
  type ShareDemand,
  ShareDimension,
  type ShareGrant,
  ShareGrantSchema,
  type ShareRequest,
  type ShareResponse,
  ShareResponseSchema,
} from "@heddle/proto/gen/router";
import { HeddleError } from "@heddle/proto/error";
import type { StoredLimits } from "../../core/tenancy/stored.ts";
import {
  type Demand,
  type Grant,
  SHARE_VALID_MS,
  SharePool,
} from "../../core/tenancy/sharing/share_pool.ts";
import type { Tenants } from "./tenants.ts";

/** Longest wait for what others give back; the router itself waits 100 ms. */
const RECALL_MS = 70;

/** A router is not asked again within this for the same scope. */
const RECALL_GAP_MS = 50;

/** How often pools that nobody uses are forgotten; a minute later they are full again. */
const SWEEP_MS = 120_000;

const DIMENSIONS = {
  [ShareDimension.REQUESTS]: { kind: "rate", limit: "requestsPerMinute" },
  [ShareDimension.TOKENS]: { kind: "rate", limit: "tokensPerMinute" },
  [ShareDimension.CONCURRENT]: { kind: "slots", limit: "concurrentRequests" },
} as const;

export interface SharingOptions {
  readonly tenants: Pick<Tenants, "tenancy" | "standing">;
  /** Asks routers to give back what they do not use of these scopes. */
  readonly recall: (routers: ReadonlySet<string>, scopes: readonly string[]) => void;
  /** In ms, monotonic. */
  readonly now: () => number;
}

/** Calls of one router that are remembered as lost, should they come all the same. */
const LOST_MAX = 64;

interface Member {
  /** Calls that the router gave up: their answers would be nobody's. */
  readonly lost: ReadonlySet<number>;
  readonly instance: string;
  readonly pools: ReadonlySet<string>;
  readonly until: number;
}

export class Sharing {
  readonly #options: SharingOptions;
  readonly #pools = new Map<string, SharePool>();
  readonly #members = new Map<string, Member>();
  readonly #recalledAt = new Map<string, number>();
  /** Told about every router that has asked. */
  readonly #listeners = new Set<(router: string) => void>();
  #sweptAt: number;

  constructor(options: SharingOptions) {
    this.#options = options;
    this.#sweptAt = options.now();
  }

  /** Limits that routers share now. */
  get size(): number {
    return this.#pools.size;
  }

  async share(request: ShareRequest, signal: AbortSignal): Promise<ShareResponse> {
    const { lost } = this.#members.get(request.router) ?? {};
    if (lost?.has(Number(request.call))) {
      throw new HeddleError("unavailable", "Cannot share: the router has given up this call");
    }
    const first = this.#ask(request, request.demands);
    if (first.idleAt.size > 0) {
      await this.#others(first.idleAt, first.scopes, signal);
      // What it gave back, it has given back.
      const again = request.demands.filter(({ scopeId }) => first.scopes.includes(scopeId))
        .map((demand) => second(demand, first.grants, request.call > 0n));
      this.#replace(first.grants, this.#ask(request, again, true).grants);
    }
    return create(ShareResponseSchema, {
      grants: first.grants,
      routers: [...this.#members.values()].filter(({ until }) => until > this.#options.now())
        .length,
    });
  }

  #ask(
    { router, routerInstance, call, inFlight, lost }: ShareRequest,
    demands: readonly ShareDemand[],
    partial = false,
  ): { grants: ShareGrant[]; idleAt: Set<string>; scopes: string[] } {
    const now = this.#options.now();
    this.#sweep(now);
    const asked = new Set<string>();
    const grants: ShareGrant[] = [];
    const idleAt = new Set<string>();
    const scopes: string[] = [];
    const before = this.#members.get(router);
    if (before !== undefined && before.instance !== routerInstance) {
      this.#leave(router, before, now);
    }
    const which = call === 0n ? undefined : {
      id: Number(call),
      inFlight: new Set(inFlight.map(Number)),
      lost: new Set(lost.map(Number)),
    };
    for (const demand of demands) {
      const pool = this.#pool(demand, now);
      if (pool === undefined) continue;
      asked.add(keyOf(demand));
      const { idleAt: others, ...given } = pool.ask(router, demandOf(demand), now, which);
      grants.push(this.#grant(demand, given));
      for (const other of others) {
        idleAt.add(other);
        if (!scopes.includes(demand.scopeId)) scopes.push(demand.scopeId);
      }
    }
    const kept = before?.instance === routerInstance ? before.pools : new Set<string>();
    if (!partial) {
      for (const key of kept) if (!asked.has(key)) this.#pools.get(key)?.drop(router, now);
    }
    const pools = partial ? new Set([...kept, ...asked]) : asked;
    const gaveUp = [
      ...before?.instance === routerInstance ? before.lost : [],
      ...which?.lost ?? [],
    ];
    this.#members.set(router, {
      instance: routerInstance,
      lost: new Set(gaveUp.slice(-LOST_MAX)),
      pools,
      until: now + SHARE_VALID_MS,
    });
    if (!partial) { for (const listener of this.#listeners) listener(router); }
    return { grants, idleAt, scopes };
  }

  #grant(
    { scopeId, dimension }: ShareDemand,
    { share, credit, roomInMs }: Omit<Grant, "idleAt">,
  ): ShareGrant {
    const standing = this.#options.tenants.standing(scopeId);
    const budget = this.#options.tenants.tenancy.limits.get(scopeId)?.budgetMicro;
    return create(ShareGrantSchema, {
      scopeId,
      dimension,
      share,
      credit,
      roomInMs: Math.ceil(roomInMs),
      validityMs: SHARE_VALID_MS,
      ...(standing === undefined || budget === undefined
        ? {}
        : { budgetRemainingMicro: BigInt(budget - standing.spentMicro) }),
    });
  }

  /** Undefined when there is no such limit. */
  #pool(demand: ShareDemand, now: number): SharePool | undefined {
    const { scopeId, dimension } = demand;
    if (dimension === ShareDimension.UNSPECIFIED) return undefined;
    const { kind, limit: member } = DIMENSIONS[dimension] ?? {};
    if (kind === undefined) return undefined;
    const limits: StoredLimits = this.#options.tenants.tenancy.limits.get(scopeId) ?? {};
    const limit = limits[member];
    const key = keyOf(demand);
    if (limit === undefined) {
      this.#pools.delete(key);
      return undefined;
    }
    const found = this.#pools.get(key);
    found?.change(limit, now);
    // A router that lives by a share already knew another control, and what that one had saved up.
    const saved = demand.held > 0 ? 0 : limit;
    const pool = found ?? new SharePool(kind, limit, { saved, now });
    this.#pools.set(key, pool);
    return pool;
  }

  /** Until all of them have asked, or for as long as the one that waits can wait. */
  async #others(
    routers: ReadonlySet<string>,
    scopes: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const now = this.#options.now();
    const recalled = new Set(
      [...routers].filter((router) => {
        const place = `${router} ${scopes.join(" ")}`;
        if (now - (this.#recalledAt.get(place) ?? -Infinity) < RECALL_GAP_MS) return false;
        this.#recalledAt.set(place, now);
        return true;
      }),
    );
    const waiting = new Set(routers);
    const { promise, resolve } = Promise.withResolvers<void>();
    const listener = (router: string) => {
      waiting.delete(router);
      if (waiting.size === 0) resolve();
    };
    const timer = setTimeout(resolve, RECALL_MS);
    const onAbort = () => resolve();
    signal.addEventListener("abort", onAbort);
    this.#listeners.add(listener);
    try {
      if (recalled.size > 0) this.#options.recall(recalled, scopes);
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#listeners.delete(listener);
    }
  }

  #replace(grants: ShareGrant[], newer: readonly ShareGrant[]): void {
    for (const [index, grant] of grants.entries()) {
      const found = newer.find((each) => keyOf(each) === keyOf(grant));
      // Credit of both answers: the first was counted as given.
      if (found !== undefined) grants[index] = { ...found, credit: found.credit + grant.credit };
    }
  }

  #leave(router: string, { pools }: Member, now: number): void {
    for (const key of pools) this.#pools.get(key)?.drop(router, now);
    this.#members.delete(router);
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const [key, pool] of this.#pools) if (!pool.used) this.#pools.delete(key);
    for (const [router, { until }] of this.#members) if (until <= now) this.#members.delete(router);
    this.#recalledAt.clear();
  }
}

function keyOf({ scopeId, dimension }: Pick<ShareDemand, "scopeId" | "dimension">): string {
  return `${dimension} ${scopeId}`;
}

function demandOf({ wanted, held, credit, returned, missing, used }: ShareDemand): Demand {
  return { wanted, held, credit, returned, missing, used };
}

/**
 * The same demand after the first answer was counted: less is missing, and nothing given back anew. Of
 * a call with a number it is known what its first answer granted.
 */
function second(
  demand: ShareDemand,
  grants: readonly ShareGrant[],
  numbered: boolean,
): ShareDemand {
  const grant = grants.find((each) => keyOf(each) === keyOf(demand));
  const credit = grant?.credit ?? 0;
  return {
    ...demand,
    credit: demand.credit + (numbered ? 0 : credit),
    returned: 0,
    missing: Math.max(0, demand.missing - credit),
  };
}
