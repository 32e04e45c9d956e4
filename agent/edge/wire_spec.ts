/** A shard's specification as a message of its own, for the wire and for the disk. */
import { create } from "@bufbuild/protobuf";
import {
  GpuRefSchema,
  HcaRefSchema,
  type ShardSpec as WireShardSpec,
  ShardSpecSchema,
} from "@heddle/proto/gen/types";
import { type WeightsWant, WeightsWantSchema } from "@heddle/proto/gen/weights";
import type { Plain } from "@heddle/proto/plain";
import type { ShardSpec } from "../core/shard/shard.ts";

export function specMessage(spec: ShardSpec): WireShardSpec {
  const { weights, ...rest } = spec;
  return create(ShardSpecSchema, {
    ...rest,
    gpus: spec.gpus.map(({ index, uuid }) => create(GpuRefSchema, { index, uuid })),
    hcas: spec.hcas.map(({ name, port }) => create(HcaRefSchema, { name, port })),
    args: [...spec.args],
    env: { ...spec.env },
    ...(weights === undefined ? {} : { weights: wantMessage(weights) }),
  });
}

export function wantMessage(
  { source, include, exclude, version }: Plain<WeightsWant>,
): WeightsWant {
  return create(WeightsWantSchema, {
    source,
    include: [...include],
    exclude: [...exclude],
    version,
  });
}
