/** What a model's files say, as it crosses the wire. */
import { create } from "@bufbuild/protobuf";
import { type ModelFacts as WireFacts, ModelFactsSchema } from "@heddle/proto/gen/weights";
import type { Plain } from "@heddle/proto/plain";
import { known, type ModelFacts } from "./model_facts.ts";

export function encodeModelFacts(model: ModelFacts): WireFacts {
  const { architecture = "", dtype = "", quantization = "", kvReplicated = false } = model;
  const { layers, heads, kvHeads, headDim, contextMax } = model;
  const { kvBytesPerToken, kvWindow, kvWindowBytesPerToken } = model;
  return create(ModelFactsSchema, {
    architecture,
    dtype,
    quantization,
    kvReplicated,
    ...(layers === undefined ? {} : { layers }),
    ...(heads === undefined ? {} : { heads }),
    ...(kvHeads === undefined ? {} : { kvHeads }),
    ...(headDim === undefined ? {} : { headDim }),
    ...(contextMax === undefined ? {} : { contextMax: whole(contextMax) }),
    ...(kvBytesPerToken === undefined ? {} : { kvBytesPerToken: whole(kvBytesPerToken) }),
    ...(kvWindow === undefined ? {} : { kvWindow: whole(kvWindow) }),
    ...(kvWindowBytesPerToken === undefined
      ? {}
      : { kvWindowBytesPerToken: whole(kvWindowBytesPerToken) }),
  });
}

/** A 0 from a peer is as good as nothing: it would be divided by. */
export function decodeModelFacts(wire: Plain<WireFacts> | undefined): ModelFacts {
  if (wire === undefined) return {};
  return known({
    architecture: wire.architecture || undefined,
    layers: wire.layers || undefined,
    heads: wire.heads || undefined,
    kvHeads: wire.kvHeads || undefined,
    headDim: wire.headDim || undefined,
    contextMax: Number(wire.contextMax ?? 0) || undefined,
    dtype: wire.dtype || undefined,
    quantization: wire.quantization || undefined,
    kvBytesPerToken: Number(wire.kvBytesPerToken ?? 0) || undefined,
    kvWindow: Number(wire.kvWindow ?? 0) || undefined,
    kvWindowBytesPerToken: Number(wire.kvWindowBytesPerToken ?? 0) || undefined,
    kvReplicated: wire.kvReplicated || undefined,
  });
}

function whole(value: number): bigint {
  return BigInt(Math.max(0, Math.round(value)));
}
