/** Has simulated nodes remove weights that nobody asks for, when control looks: as the shell does it. */
import type { EpochMs, NodeId } from "../../ids.ts";
import { weightsToRemove } from "../../weights/make_room.ts";
import { type UnusedByFolder, unusedNow } from "../../weights/unused.ts";
import type { World } from "../../world.ts";
import { GIB } from "./fake_disk.ts";

/** Free room below which unused weights go. */
export const FREE_BELOW_BYTES = 20 * GIB;
const LOOK_MS = 2_000;
/** A node that was told has said by then how much room it has. */
export const HEARD_AGAIN_MS = 15_000;

export interface Told {
  readonly node: NodeId;
  readonly folder: string;
}

export class WeightsKeeper {
  #lookAt: EpochMs = 0;
  #unused: UnusedByFolder = new Map();
  /** Nodes that are left alone until then. */
  readonly #until = new Map<NodeId, EpochMs>();

  /** Another control knows nothing of what this one saw. */
  begin(): void {
    this.#unused = new Map();
    this.#until.clear();
  }

  /** What is to be removed now. */
  look(world: World, now: EpochMs): readonly Told[] {
    if (now < this.#lookAt) return [];
    this.#lookAt = now + LOOK_MS;
    this.#unused = unusedNow(world, this.#unused, now);
    const open = new Map(
      [...this.#unused].filter(([, { node }]) => (this.#until.get(node) ?? 0) <= now),
    );
    const removals = weightsToRemove(world, open, { freeBelowBytes: FREE_BELOW_BYTES, now });
    for (const { node } of removals) this.#until.set(node, now + HEARD_AGAIN_MS);
    return removals.map(({ node, folder }) => ({ node, folder }));
  }
}
