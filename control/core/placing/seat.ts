/** One node with exactly what a shard would get there. */
import type { Plain } from "@heddle/proto/plain";
import type { Hca } from "@heddle/proto/gen/types";
import { type Candidate, fabricPorts } from "./candidate.ts";
import { type PlaceRequest, roomyGpus } from "./fits.ts";
import { chooseGpus, type GpuChoice } from "./gpu_choice.ts";
import { freeBlock } from "./port_blocks.ts";
import type { PortRange } from "./candidate.ts";

export interface Seat {
  readonly candidate: Candidate;
  readonly choice: GpuChoice;
  /** Empty for a replica on one node. */
  readonly fabric: string;
  readonly hcas: readonly Plain<Hca>[];
  readonly ports: PortRange;
}

/** The seat of a node that passed every fit. `fabric` is empty for a replica on one node. */
export function seatOn(
  request: PlaceRequest,
  candidate: Candidate,
  fabric: string,
): Seat | undefined {
  const { gpus_per_node: count, tp } = request.profile;
  // A group of more GPUs than a node gives spans nodes, and is here as large as its part.
  const size = Math.max(1, Math.min(tp, count));
  // Where the node's part is no multiple of the group, all of it counts as one group.
  const even = count % size === 0;
  const hcas = fabric === "" ? [] : fabricPorts(candidate.inventory, fabric);
  const choice = chooseGpus(roomyGpus(request, candidate), {
    size: even ? size : count,
    groups: even ? count / size : 1,
    hcas,
  });
  const ports = freeBlock(candidate);
  if (choice === undefined || ports === undefined) return undefined;
  return { candidate, choice, fabric, hcas, ports };
}
