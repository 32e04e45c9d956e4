/**
 * What a state directory was last used for. Control remembers the nodes and the catalog that it
 * had, and rightly waits for those nodes and hesitates to drop those models; when `up` is asked for
 * something else, they never come, and everything would wait for them.
 */
import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import type { UpPlan } from "./node.ts";

/** What control and the router remember of the cluster, below the state directory. */
const MEMORY = [
  "control/control.db",
  "control/control.db-wal",
  "control/control.db-shm",
  "router/snapshot.json",
];

/**
 * Makes the state directory forget another plan's nodes and models, and says so when there was
 * something to forget. Under the same plan what operators decided stays. Only while nothing runs from there.
 */
export async function forgetOtherPlan(
  state: string,
  plan: Pick<UpPlan, "catalog"> & { readonly nodes: readonly { readonly name: string }[] },
  say: (line: string) => void,
): Promise<void> {
  const note = join(state, "plan.json");
  const now = JSON.stringify({
    nodes: plan.nodes.map(({ name }) => name).toSorted(),
    catalog: plan.catalog,
  });
  if (await readTextIfExists(note) === now) return;
  const removed = await Promise.all(MEMORY.map((path) => removeIfExists(join(state, path))));
  await writeFileAtomic(note, now);
  if (removed.some(Boolean)) {
    say("Other nodes or another catalog than last time: forgetting what control knew of those");
  }
}

async function removeIfExists(path: string): Promise<boolean> {
  try {
    await Deno.remove(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
