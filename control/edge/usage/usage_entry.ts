/** A router's record of one request, checked and dated, as what is written. */
import { toBinary } from "@bufbuild/protobuf";
import { type UsageRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import type { Calendar } from "../../core/usage/periods.ts";
import type { UsageEntry } from "../../core/usage/rollup.ts";

const RECORD_ID = /^[A-Za-z0-9_-]{16,64}$/;
/** Ids and names of ours are shorter; what clients wrote is cut to this. */
const TEXT_CHARS_MAX = 200;
/** A chain has four. */
const SCOPES_MAX = 8;
/** A router that was cut off for longer dates its records too late, rather than never. */
const AGE_MS_MAX = 30 * 86_400_000;
/** Beyond any request; keeps sums whole numbers. */
const NUMBER_MAX = 2 ** 40;

/** Undefined for a record that cannot be one: without an id of its own it could count twice. */
export function entryOf(
  record: UsageRecord,
  { router, calendar, now }: {
    readonly router: string;
    readonly calendar: Calendar;
    readonly now: number;
  },
): UsageEntry | undefined {
  if (!RECORD_ID.test(record.id)) return undefined;
  const at = now - Math.min(Number(record.ageMs), AGE_MS_MAX);
  const { hour, day, month } = calendar.periods(at);
  const modelAsked = clean(record.modelAsked);
  return {
    id: record.id,
    at,
    record: Uint8Array.from(toBinary(UsageRecordSchema, { ...record, modelAsked, router })),
    hour,
    key: clean(record.keyId),
    project: clean(record.projectId),
    model: clean(record.model),
    pool: clean(record.pool),
    sums: sumsOf(record),
    scopes: [...new Set(record.scopeIds.slice(0, SCOPES_MAX).map(clean))],
    periods: [day, month],
  };
}

function sumsOf(record: UsageRecord): UsageEntry["sums"] {
  const { usage } = record;
  let wasted = 0;
  for (const attempt of record.attempts) {
    if (attempt.served || attempt.usage === undefined) continue;
    wasted += whole(attempt.usage.promptTokens) + whole(attempt.usage.completionTokens);
  }
  return {
    requests: 1,
    failures: record.outcome === "ok" ? 0 : 1,
    promptTokens: whole(usage?.promptTokens),
    completionTokens: whole(usage?.completionTokens),
    cachedTokens: whole(usage?.cachedTokens),
    reasoningTokens: whole(usage?.reasoningTokens),
    estimated: record.estimated ? 1 : 0,
    costMicro: whole(record.costMicro),
    durationMs: whole(record.durationMs),
    wastedTokens: wasted,
  };
}

function whole(value: bigint | undefined): number {
  return Math.min(Number(value ?? 0n), NUMBER_MAX);
}

// The columns of a database take no NUL, and tables no line breaks.
function clean(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.slice(0, TEXT_CHARS_MAX).replace(/[\u0000-\u001f\u007f]/g, "?");
}
