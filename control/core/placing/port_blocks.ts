/** Ports of one node, given out in whole blocks. Running out is a rejection, never a collision. */
import type { Candidate, PortRange } from "./candidate.ts";

/**
 * The lowest block that no shard holds any part of; undefined when there is none. One where something
 * foreign was found is given only when there is no other: it may be gone by now.
 */
export function freeBlock(candidate: Candidate): PortRange | undefined {
  const { enginePortFirst, enginePortLast, enginePortBlock: count } = candidate.inventory;
  if (count <= 0) return undefined;
  let doubtful: PortRange | undefined;
  for (let first = enginePortFirst; first + count - 1 <= enginePortLast; first += count) {
    const block = { first, count };
    if (candidate.heldPorts.some((held) => overlaps(held, block))) continue;
    if (!candidate.foreignPorts.has(first)) return block;
    doubtful ??= block;
  }
  return doubtful;
}

/** Blocks that the node's range has in all. */
export function blockCount(candidate: Candidate): number {
  const { enginePortFirst, enginePortLast, enginePortBlock } = candidate.inventory;
  if (enginePortBlock <= 0) return 0;
  return Math.max(0, Math.floor((enginePortLast - enginePortFirst + 1) / enginePortBlock));
}

/** Held blocks may lie askew when the node's range was changed under them. */
function overlaps(a: PortRange, b: PortRange): boolean {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}
