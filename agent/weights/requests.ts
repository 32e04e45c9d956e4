/** What control asks of this node about weights, and the answers. */
import { create } from "@bufbuild/protobuf";
import { type NodeAnswer, NodeAnswerSchema, type NodeRequest } from "@heddle/proto/gen/weights";
import type { WeightsWant } from "@heddle/proto/gen/weights";
import { known } from "@heddle/common/model/model_facts";
import type { Shard } from "../core/shard/shard.ts";
import { namerOf, usedBy } from "../core/weights/users.ts";
import { encodeSource } from "../edge/session/encode_weights.ts";
import { readModel } from "../edge/model_reader.ts";
import type { NodeWeights } from "./node_weights.ts";

export interface RequestOptions {
  readonly weights: NodeWeights;
  /** Of this node. */
  readonly shards: () => readonly Shard[];
}

type Answered = Pick<NodeAnswer, "reason" | "message"> & { answer?: NodeAnswer["answer"] };

const DONE: Answered = { reason: "", message: "" };

/** Never rejects. */
export async function answerRequest(
  { requestId, ask }: NodeRequest,
  options: RequestOptions,
): Promise<NodeAnswer> {
  const { reason, message, answer } = await answerTo(ask, options);
  return create(NodeAnswerSchema, {
    requestId,
    reason,
    message,
    ...(answer === undefined ? {} : { answer }),
  });
}

async function answerTo(
  ask: NodeRequest["ask"],
  { weights, shards }: RequestOptions,
): Promise<Answered> {
  switch (ask.case) {
    case "fetchWeights":
      return { ...DONE, message: await weights.prefetch(ask.value) };
    case "removeWeights": {
      const namer = namerOf(ask.value, shards());
      if (namer !== undefined) {
        const message = `shard ${namer} was given a path in ${ask.value}: stop it first`;
        return { reason: "in_use", message };
      }
      const ended = await weights.remove(ask.value, usedBy(shards()));
      if (ended.kind === "failed") return ended;
      return { ...DONE, answer: { case: "freedBytes", value: BigInt(ended.freed_bytes) } };
    }
    case "inspectSource":
      return await inspect(ask.value, weights);
    case undefined:
      return { reason: "unknown_request", message: "This agent is older than the request" };
    default:
      return ask satisfies never;
  }
}

async function inspect(want: WeightsWant, weights: NodeWeights): Promise<Answered> {
  if (want.source.startsWith("/")) {
    const { facts: model, weightBytes, problem } = await readModel(want.source);
    if (problem !== undefined) return { reason: "model_file_damaged", message: problem };
    const facts = encodeSource({
      want,
      totalBytes: weightBytes ?? 0,
      weightBytes,
      files: 0,
      entry: "",
      model,
      note: weightBytes === undefined ? `${want.source} cannot be read on this node` : "",
    });
    return { ...DONE, answer: { case: "facts", value: facts } };
  }
  const read = await weights.inspect(want);
  if (read.kind === "failed") return read;
  const facts = encodeSource({
    want: { ...want, version: read.version },
    totalBytes: read.total_bytes,
    weightBytes: read.weight_bytes,
    files: read.files,
    entry: read.entry,
    model: known(read.facts),
    note: read.note,
  });
  return { ...DONE, answer: { case: "facts", value: facts } };
}
