/** What placement found, in one line and in a line per node. */
import type { Placement } from "./place.ts";
import type { Rejection, RejectReason } from "./rejection.ts";

/** "0/12 nodes fit: 7 gpus_free, 3 fabric_short, 2 unreachable"; commonest reason first. */
export function summarise(placement: Placement): string {
  const rejected = placement.rejections.filter((each) => each.reason !== "outscored");
  const used = placement.kind === "placed" ? placement.seats.length : 0;
  const total = placement.rejections.length + used;
  if (total === 0) return "0/0 nodes fit: no node has registered";
  const head = `${total - rejected.length}/${total} nodes fit`;
  return rejected.length === 0 ? head : `${head}: ${countReasons(rejected)}`;
}

function countReasons(rejections: readonly Rejection[]): string {
  const counts = new Map<RejectReason, number>();
  for (const { reason } of rejections) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .map(([reason, count]) => `${count} ${reason}`).join(", ");
}
