/** Whether the fleet is too small for a model for ever, as opposed to busy. */
import type { Model, Profile } from "../catalog.ts";
import type { Node } from "../world.ts";

/**
 * Why no profile of the model would find its GPUs on these nodes if nothing else ran there, in words
 * with numbers; undefined when one would, or needs no GPU.
 */
export function neverEnough(nodes: readonly Node[], { profiles }: Model): string | undefined {
  const why = profiles.map((profile) => tooFew(nodes, profile));
  return why.every((each) => each !== undefined) ? why.join("; ") : undefined;
}

function tooFew(nodes: readonly Node[], profile: Profile): string | undefined {
  const { gpu_class: gpuClass, gpus_per_node: want } = profile;
  if (gpuClass === undefined) return undefined;
  const counts = nodes.map(({ inventory }) =>
    inventory.gpus.filter((gpu) => gpu.gpuClass === gpuClass).length
  );
  const large = counts.filter((count) => count >= want).length;
  if (large >= profile.nodes) return undefined;
  if (profile.nodes > 1) {
    return `want ${profile.nodes} nodes with ${want} ${gpuClass} have ${large} in all`;
  }
  return `want ${want} ${gpuClass} on a node have ${Math.max(0, ...counts)} in all`;
}
