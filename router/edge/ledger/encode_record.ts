/** A request's record as control gets it. */
import { Buffer } from "node:buffer";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { redact } from "@heddle/common/log";
import { type UsageRecord as WireRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import type { UsageRecord } from "../../core/request/usage_record.ts";
import type { Usage } from "../../core/usage.ts";

/** A name that a client made up is not kept for longer than any model's is. */
const MODEL_ASKED_CHARS_MAX = 256;
const ID_BYTES = 16;

/** Gives the record an id, which makes it count once however often it is sent. */
export function encodeRecord(record: UsageRecord): WireRecord {
  const { key, usage, firstContentMs } = record;
  return create(UsageRecordSchema, {
    id: randomId(),
    requestId: record.requestId,
    keyId: key?.id ?? "",
    projectId: key?.projectId ?? "",
    scopeIds: [...key?.scopeIds ?? []],
    // A client may write anything there, its key included.
    modelAsked: String(redact(record.modelAsked.slice(0, MODEL_ASKED_CHARS_MAX))),
    model: record.model,
    replicaId: record.replicaId,
    pool: record.pool,
    band: record.band,
    routingProfile: record.routingProfile,
    route: record.route,
    status: record.status,
    outcome: record.outcome,
    stream: record.stream,
    ...(usage === undefined ? {} : { usage: encodeUsage(usage) }),
    estimated: record.estimated,
    costMicro: BigInt(Math.max(0, Math.round(record.costMicro))),
    queueMs: whole(record.queueMs),
    ...(firstContentMs === undefined ? {} : { ttftMs: whole(firstContentMs) }),
    durationMs: whole(record.durationMs),
    attempts: record.attempts.map(({ replicaId, model, outcome, usage, served }) => ({
      replicaId,
      model,
      outcome,
      served,
      ...(usage === undefined ? {} : { usage: encodeUsage(usage) }),
    })),
  });
}

function encodeUsage(usage: Usage) {
  return {
    promptTokens: BigInt(usage.promptTokens),
    completionTokens: BigInt(usage.completionTokens),
    cachedTokens: BigInt(usage.cachedTokens ?? 0),
    reasoningTokens: BigInt(usage.reasoningTokens ?? 0),
  } satisfies MessageInitShape<typeof UsageRecordSchema>["usage"];
}

function whole(ms: number): bigint {
  return BigInt(Math.max(0, Math.round(ms)));
}

function randomId(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(ID_BYTES))).toString("hex");
}
