/** Weights of this node, and what a source holds, as wire messages. */
import { create } from "@bufbuild/protobuf";
import {
  type SourceFacts,
  SourceFactsSchema,
  type Weights,
  WeightsSchema,
  type WeightsWant,
} from "@heddle/proto/gen/weights";
import type { Plain } from "@heddle/proto/plain";
import { encodeWeightsState } from "@heddle/proto/weights_state";
import type { ModelFacts } from "@heddle/common/model/model_facts";
import { encodeModelFacts } from "@heddle/common/model/model_wire";
import { wantMessage } from "../wire_spec.ts";

/** What is told of one source on this node. */
export interface ToldWeights {
  readonly want: Plain<WeightsWant>;
  readonly state: "fetching" | "ready" | "failed";
  readonly folder: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly doneBytes: number;
  readonly bytesPerSecond: number | undefined;
  readonly secondsLeft: number | undefined;
  readonly reason: string;
  readonly message: string;
}

export function encodeWeights(told: ToldWeights, shardIds: readonly string[]): Weights {
  const { want, state, folder, path, reason, message, bytesPerSecond, secondsLeft } = told;
  return create(WeightsSchema, {
    want: wantMessage(want),
    state: encodeWeightsState(state),
    folder,
    path,
    sizeBytes: whole(told.sizeBytes),
    doneBytes: whole(told.doneBytes),
    reason,
    message,
    shardIds: [...shardIds],
    ...(bytesPerSecond === undefined ? {} : { bytesPerSecond: whole(bytesPerSecond) }),
    ...(secondsLeft === undefined ? {} : { secondsLeft: whole(secondsLeft) }),
  });
}

/** What was read at a source. */
export interface ReadSource {
  readonly want: Plain<WeightsWant>;
  readonly totalBytes: number;
  readonly weightBytes: number | undefined;
  readonly files: number;
  readonly entry: string;
  readonly model: ModelFacts;
  readonly note: string;
}

export function encodeSource(read: ReadSource): SourceFacts {
  const { want, totalBytes, weightBytes, files, entry, note } = read;
  return create(SourceFactsSchema, {
    want: wantMessage(want),
    totalBytes: whole(totalBytes),
    files,
    entry,
    note,
    model: encodeModelFacts(read.model),
    ...(weightBytes === undefined ? {} : { weightBytes: whole(weightBytes) }),
  });
}

function whole(value: number): bigint {
  return BigInt(Math.max(0, Math.round(value)));
}
