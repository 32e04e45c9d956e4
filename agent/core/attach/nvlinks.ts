/**
 * How many NVLinks are up, of how many that the board has. A link that is down is unambiguous; one
 * that only retries is not judged. Cards without a bridge show links that are down for ever, so only
 * cards of a kind of which some link was ever up count.
 */
import type { NvlinkStatus } from "../nvidia/nvlink_status.ts";
import type { Impairment } from "./standing.ts";

/** The most links that each card was seen with, up or listed beside ones that were up, by UUID. */
export type LinksSeen = ReadonlyMap<string, number>;

export interface LinkJudgement {
  /** Undefined: there is nothing to claim. */
  readonly count: { readonly up: number; readonly expected: number } | undefined;
  readonly impairment: Impairment | undefined;
  readonly seen: LinksSeen;
}

/** Judges one reading. `kinds` are the names of cards by UUID. */
export function judgeNvlinks(
  statuses: ReadonlyMap<string, NvlinkStatus>,
  kinds: ReadonlyMap<string, string>,
  before: LinksSeen,
): LinkJudgement {
  const seen = new Map(before);
  for (const [uuid, { active, inactive }] of statuses) {
    // Some up: those that are down beside them are links of the same board.
    const listed = active > 0 ? active + inactive : 0;
    seen.set(uuid, Math.max(listed, seen.get(uuid) ?? 0));
  }
  const kindOf = (uuid: string) => kinds.get(uuid) ?? uuid;
  const byKind = new Map<string, number>();
  for (const [uuid, count] of seen) {
    byKind.set(kindOf(uuid), Math.max(count, byKind.get(kindOf(uuid)) ?? 0));
  }
  let up = 0;
  let expected = 0;
  const lacking: string[] = [];
  for (const [uuid, { active }] of statuses) {
    const all = byKind.get(kindOf(uuid)) ?? 0;
    up += active;
    expected += all;
    if (active < all) lacking.push(`${uuid} has ${active} of its ${all}`);
  }
  if (expected === 0) return { count: undefined, impairment: undefined, seen };
  const impairment = lacking.length === 0 ? undefined : {
    reason: "nvlink_lost" as const,
    message: `${up} of ${expected} NVLinks are up: ${lacking.slice(0, 8).join(", ")}`,
  };
  return { count: { up, expected }, impairment, seen };
}
