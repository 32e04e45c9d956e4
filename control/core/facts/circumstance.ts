/**
 * What a permanent failure depends on, as a hash: while it is the same, trying again cannot help.
 * It holds the profile, the versions of its engine in the fleet, and where its weights lie.
 */
import { hash32 } from "@heddle/common/backoff";
import type { Model, Profile } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import { weightsBytes } from "../placing/weights.ts";
import type { World } from "../world.ts";

export function circumstance(world: World, model: Model, profile: Profile): string {
  const versions = new Set<string>();
  const weights = new Set<string>();
  for (const { name, inventory } of world.nodes.values()) {
    for (const engine of inventory.engines) {
      if (engine.name === profile.engine) versions.add(`${engine.version} ${engine.path}`);
    }
    const bytes = weightsBytes(inventory, model);
    if (bytes !== undefined) weights.add(`${name} ${bytes}`);
  }
  const text = JSON.stringify([
    fingerprint(model, profile),
    [...versions].sort(),
    [...weights].sort(),
  ]);
  return hash32(text).toString(16).padStart(8, "0");
}

/** What an operator can do about it, for the end of a sentence. */
export const WHAT_HELPS =
  "it is tried again when its profile, the engine's version on the nodes or its weights change";
