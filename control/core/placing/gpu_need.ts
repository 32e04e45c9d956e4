/**
 * What a profile needs of each GPU, by the same formula by which the agent judges before it launches:
 * what an agent would refuse for good is not placed there, and what it would take is not held back.
 */
import { readLaunchArgs } from "@heddle/common/model/launch_args";
import {
  cacheBytesPerToken,
  cacheRoom,
  contextOf,
  gpuNeedMib,
  type MemoryRequest,
} from "@heddle/common/model/memory";
import type { Profile } from "../catalog.ts";
import type { SourceHint } from "../facts/source_hint.ts";
import type { Candidate } from "./candidate.ts";
import { type ModelSource, weightsBytes } from "./weights.ts";

/** Of a request for a place, what counts here. */
interface Asked {
  readonly model: ModelSource;
  readonly profile: Pick<Profile, "args" | "engine" | "gpus_per_node" | "pp" | "tp">;
  readonly hint?: Pick<SourceHint, "facts" | "weightBytes">;
}

export interface GpuNeed {
  /** Memory that the GPU must have in all. */
  readonly mib: number;
  /** What it is for, and what would fit on GPUs of so many MiB instead. */
  words(haveMib: number): string;
}

/** Undefined while it cannot be told. */
export function gpuNeed(request: Asked, candidate: Candidate): GpuNeed | undefined {
  const memory = memoryRequest(request, candidate);
  if (memory === undefined) return undefined;
  const mib = gpuNeedMib(memory, request.profile.gpus_per_node);
  if (mib === undefined) return undefined;
  const context = cacheBytesPerToken(memory) === undefined ? undefined : contextOf(memory);
  const cache = context === undefined ? "" : `, a context of ${context} tokens`;
  return {
    mib,
    words: (haveMib) => {
      const gpus = Array(Math.max(1, request.profile.gpus_per_node)).fill(haveMib);
      const tokens = context === undefined ? 0 : cacheRoom(memory, gpus)?.tokens ?? 0;
      const instead = tokens === 0 ? "" : `; at most ${tokens} tokens would fit`;
      return `MiB on each GPU for the weights${cache} and what ${memory.engine} needs beside${instead}`;
    },
  };
}

function memoryRequest(
  { model, profile, hint }: Asked,
  { inventory }: Candidate,
): MemoryRequest | undefined {
  // A source tells of its weights alone; a folder on a node holds other files besides.
  const weightBytes = hint?.weightBytes ?? weightsBytes(inventory, model);
  // The simulated engine has no weights.
  if (weightBytes === undefined || weightBytes === 0 || profile.engine === "sim") return undefined;
  const { engine, tp, pp } = profile;
  return {
    engine,
    tp,
    pp,
    args: readLaunchArgs(profile.args),
    model: hint?.facts ?? {},
    weightBytes,
  };
}
