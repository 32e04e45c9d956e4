/**
 * Which version of a model's source the cluster has. A branch moves; replicas of one model must not
 * differ because their nodes looked at different times, so the first answer is kept.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";
import { type ModelSource, weightsOf } from "../placing/weights.ts";

/** The version that most nodes have, or fetch; empty when none does. Ties go to the lower name. */
export function weightsVersion(
  inventories: Iterable<Plain<Inventory>>,
  model: ModelSource,
): string {
  const counts = new Map<string, number>();
  for (const inventory of inventories) {
    for (const { want } of weightsOf(inventory, model)) {
      const version = want?.version ?? "";
      if (version !== "") counts.set(version, (counts.get(version) ?? 0) + 1);
    }
  }
  const [best] = [...counts].sort(([a, countA], [b, countB]) =>
    countB - countA || (a < b ? -1 : 1)
  );
  return best?.[0] ?? "";
}
