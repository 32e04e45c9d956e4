/** What a model that was looked at takes of GPUs, for operators who ask before they write a profile. */
import type { SourceFacts } from "@heddle/proto/gen/weights";
import type { Plain } from "@heddle/proto/plain";
import { readLaunchArgs } from "@heddle/common/model/launch_args";
import {
  addsUpGpus,
  cacheBytesPerToken,
  cacheRoom,
  gpuNeedMib,
  headsProblem,
  type MemoryRequest,
  MIB,
  weightsNeedMib,
} from "@heddle/common/model/memory";
import { decodeModelFacts } from "@heddle/common/model/model_wire";

/** Sizes of a tensor-parallel group within one machine. */
export const SIZES = [1, 2, 4, 8] as const;

export interface GpuNeed {
  readonly tp: number;
  /** Why the model cannot be divided so; empty when it can. */
  readonly problem: string;
  readonly memoryBytes: number;
  /** Of cache for each token on each GPU; undefined: cannot be told. */
  readonly kvBytesPerToken: number | undefined;
}

/** For each size of a group, what each of its GPUs holds. */
export function gpuNeeds(facts: Plain<SourceFacts>): readonly GpuNeed[] {
  return SIZES.map((tp) => gpuNeed(facts, tp));
}

/** Longest context in tokens on GPUs of that memory: 0 when the weights alone do not fit. */
export function contextOn(
  facts: Plain<SourceFacts>,
  tp: number,
  memoryMib: number,
): number | undefined {
  const request = requestOf(facts, tp);
  if (request.weightBytes === undefined) return undefined;
  if (headsProblem(request.engine, tp, request.model) !== undefined) return undefined;
  const needMib = gpuNeedMib({ ...request, model: {} }, tp);
  if (needMib !== undefined && memoryMib < needMib) return 0;
  const room = cacheRoom(request, Array(tp).fill(memoryMib));
  if (room === undefined) return undefined;
  return Math.min(room.tokens, request.model.contextMax ?? Infinity);
}

/** Whether a source is a model in GGUF, which llama.cpp serves. */
export function isGguf({ entry, want }: Plain<SourceFacts>): boolean {
  return /\.gguf$/i.test(entry) || /\.gguf$/i.test(want?.source ?? "");
}

function gpuNeed(facts: Plain<SourceFacts>, tp: number): GpuNeed {
  const request = requestOf(facts, tp);
  const gpus = addsUpGpus(request.engine) ? tp : 1;
  const needMib = weightsNeedMib({ ...request, weightBytes: request.weightBytes ?? 0 }) ?? 0;
  const perToken = cacheBytesPerToken(request);
  return {
    tp,
    problem: headsProblem(request.engine, tp, request.model) ?? "",
    memoryBytes: Math.ceil(needMib * MIB / gpus),
    kvBytesPerToken: perToken === undefined ? undefined : Math.ceil(perToken / gpus),
  };
}

// As the profile that is proposed for it would ask.
function requestOf(facts: Plain<SourceFacts>, tp: number): MemoryRequest {
  const { weightBytes, model } = facts;
  return {
    engine: isGguf(facts) ? "llamacpp" : "vllm",
    tp,
    pp: 1,
    args: readLaunchArgs([]),
    model: decodeModelFacts(model),
    ...(weightBytes === undefined ? {} : { weightBytes: Number(weightBytes) }),
  };
}
