/** When a draining replica may be stopped: nobody sends to it any more, and it has nothing left. */
import { compareRevisions, formatRevision, type Revision } from "@heddle/proto/revision";
import { formatDurationMs } from "@heddle/common/duration";
import type { EpochMs } from "../ids.ts";
import type { Draining, Replica, Router, World } from "../world.ts";
import { leader } from "../facts/shard_facts.ts";

export type DrainEnd =
  | { readonly kind: "end"; readonly reason: "drained" | "drain_grace_passed" }
  /** Looked at again when something is reported, and at `until` at the latest. */
  | { readonly kind: "wait"; readonly detail: string; readonly until: EpochMs };

/**
 * Every leased router has applied the removal and has none in flight, and the engine's own numbers,
 * read since the drain began, are zero; or the grace has passed. No report is not "nothing".
 */
export function drainEnd(
  world: World,
  replica: Replica,
  draining: Draining,
  now: EpochMs,
): DrainEnd {
  // It was never an endpoint, so nobody can have sent anything.
  if (replica.readyAt === undefined) return { kind: "end", reason: "drained" };
  if (now >= draining.deadline) return { kind: "end", reason: "drain_grace_passed" };
  const leased = [...world.routers.values()].filter((router) => router.leaseUntil > now)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const until = Math.min(draining.deadline, ...leased.map((router) => router.leaseUntil));
  const detail = publicationWait(draining.publishedAs) ??
    routersWait(leased, replica, draining.publishedAs) ??
    engineWait(replica, readAfter(world, draining, now), now);
  return detail === undefined
    ? { kind: "end", reason: "drained" }
    : { kind: "wait", detail, until };
}

function publicationWait(publishedAs: Revision | undefined): string | undefined {
  return publishedAs === undefined ? "routers are about to be told" : undefined;
}

function routersWait(
  leased: readonly Router[],
  replica: Replica,
  publishedAs: Revision | undefined,
): string | undefined {
  for (const router of leased) {
    if (publishedAs !== undefined && compareRevisions(router.applied, publishedAs) < 0) {
      return `router ${router.name} has applied ${formatRevision(router.applied)}, ` +
        `not yet ${formatRevision(publishedAs)}`;
    }
  }
  const inFlight = leased.reduce(
    (sum, router) => sum + (router.replicas.get(replica.id)?.inFlight ?? 0),
    0,
  );
  return inFlight > 0 ? `${inFlight} requests in flight at routers` : undefined;
}

/**
 * The engine's numbers count when they were read after the drain began, and after the lease ended of
 * each router that may not know of it: until then it may have sent what they do not show.
 */
function readAfter(world: World, draining: Draining, now: EpochMs): EpochMs {
  const { publishedAs, since } = draining;
  return [...world.routers.values()]
    .filter((router) =>
      router.leaseUntil <= now && publishedAs !== undefined &&
      compareRevisions(router.applied, publishedAs) < 0
    )
    .reduce((latest, router) => Math.max(latest, router.leaseUntil), since);
}

function engineWait(replica: Replica, after: EpochMs, now: EpochMs): string | undefined {
  const load = leader(replica)?.status?.load;
  if (load === undefined) return "its engine reports no numbers of its own";
  if (load.at <= after) {
    return `its engine last reported ${formatDurationMs(now - load.at)} ago, which is too old`;
  }
  return load.running + load.waiting > 0
    ? `${load.running} running and ${load.waiting} waiting in its engine`
    : undefined;
}
