/** Which replicas go when more run than are wanted. */
import type { EpochMs } from "../ids.ts";
import type { Replica, RetireReason, World } from "../world.ts";
import { scaleDownFrom } from "../facts/scaling.ts";
import { workOf } from "../facts/work.ts";

export interface Surplus {
  readonly go: readonly { readonly replica: Replica; readonly reason: RetireReason }[];
  /** Those that are left alone until the window after the start has passed. */
  readonly held?: { readonly count: number; readonly until: EpochMs };
}

/**
 * First what serves nobody yet, then what was rebuilt while its node was lost, then what has least
 * work. `atOnce`: an operator gave the number, so no window holds it up.
 */
export function surplusOf(
  world: World,
  good: readonly Replica[],
  want: { readonly count: number; readonly atOnce: boolean },
  now: EpochMs,
): Surplus {
  const excess = good.length - want.count;
  if (excess <= 0) return { go: [] };
  const ranked = good.toSorted((a, b) =>
    rank(world, a) - rank(world, b) ||
    (workOf(world, a, now) ?? 0) - (workOf(world, b, now) ?? 0) || (a.id < b.id ? 1 : -1)
  );
  const until = scaleDownFrom(world);
  const open = want.atOnce || now >= until;
  const extra = ranked.slice(0, excess);
  const go = extra.flatMap((replica) => {
    const reason: RetireReason = returned(world, replica) ? "rebuilt_elsewhere" : "surplus";
    return open || reason === "rebuilt_elsewhere" ? [{ replica, reason }] : [];
  });
  const count = extra.length - go.length;
  return count === 0 ? { go } : { go, held: { count, until } };
}

function rank(world: World, replica: Replica): number {
  if (replica.readyAt === undefined) return 0;
  return returned(world, replica) ? 1 : 2;
}

/** It ran on a node while that was lost, so what it served may have been rebuilt. */
export function returned(world: World, replica: Replica): boolean {
  return replica.shards.some((shard) => {
    const at = world.nodes.get(shard.node)?.returnedAt;
    return at !== undefined && replica.createdAt <= at;
  });
}
