/** What a case may expect of the router's own books: its usage records, counters and memory. */
import type { OutcomeReason } from "../../../router/core/request/outcome.ts";
import type { UsageRecord } from "../../../router/core/request/usage_record.ts";
import {
  CaseFault,
  type Check,
  number,
  numbers,
  object,
  type Seen,
  shown,
  string,
} from "./seen.ts";

/** The one record of the request. */
function recordOf(seen: Seen): UsageRecord | undefined {
  return seen.records.at(-1);
}

const FIELDS = {
  prompt_tokens: (record) => record.usage?.promptTokens,
  completion_tokens: (record) => record.usage?.completionTokens,
  cached_tokens: (record) => record.usage?.cachedTokens,
  reasoning_tokens: (record) => record.usage?.reasoningTokens,
} as const satisfies Record<string, (record: UsageRecord) => number | undefined>;

function fields(
  wanted: unknown,
  seen: Seen,
  holds: (got: number, want: number) => boolean,
): string | undefined {
  const record = recordOf(seen);
  for (const [name, want] of Object.entries(object(wanted))) {
    if (!isField(name)) throw new CaseFault(`no such field: ${name}`);
    const got = record === undefined ? undefined : FIELDS[name](record);
    if (got === undefined || !holds(got, number(want))) return `${name} is ${shown(got)}`;
  }
  return undefined;
}

function isField(name: string): name is keyof typeof FIELDS {
  return Object.hasOwn(FIELDS, name);
}

/** Requests for which an engine did some work. */
const records: Check = (wanted, seen) => {
  const count = seen.records.filter((record) => record.usage !== undefined).length;
  return numbers(wanted).includes(count) ? undefined : `got ${count}`;
};

const estimated: Check = (wanted, seen) => {
  if (typeof wanted !== "boolean") throw new CaseFault("want true or false");
  const got = recordOf(seen)?.estimated;
  return got === wanted ? undefined : `got ${got}`;
};

/** Words for outcomes that say which side failed, and no more. */
function outcomeWord(reason: OutcomeReason): string {
  if (reason === "ok" || reason === "client_closed") return reason;
  return reason.startsWith("engine_") || reason === "stream_broken" ? "upstream_error" : reason;
}

const outcome: Check = (wanted, seen) => {
  const record = recordOf(seen);
  if (record === undefined) return "there is no record";
  return outcomeWord(record.outcome) === string(wanted) ? undefined : `got ${record.outcome}`;
};

const failureCounted: Check = (wanted, seen) => {
  if (typeof wanted !== "boolean") throw new CaseFault("want true or false");
  return (seen.failedTries > 0) === wanted ? undefined : `${seen.failedTries} failures counted`;
};

const reservedAtMost: Check = (wanted, seen) => {
  const most = Math.max(0, ...seen.reserved);
  // None at all would hold any bound.
  if (most === 0) return "nothing was reserved";
  return most <= number(wanted) ? undefined : `${most} were reserved`;
};

export const ROUTER_CHECKS = {
  usage: (wanted, seen) => fields(wanted, seen, (got, want) => got === want),
  usage_min: (wanted, seen) => fields(wanted, seen, (got, want) => got >= want),
  usage_records: records,
  estimated,
  outcome,
  replica_failure_counted: failureCounted,
  in_flight_after: (wanted, seen) =>
    seen.inFlight === number(wanted) ? undefined : `got ${seen.inFlight}`,
  reservation_max: reservedAtMost,
  reservation_after: (wanted, seen) =>
    seen.reservedAfter === number(wanted) ? undefined : `got ${seen.reservedAfter}`,
  peak_memory_growth_below_mib: (wanted, seen) =>
    seen.memoryGrowthMib < number(wanted)
      ? undefined
      : `grew by ${seen.memoryGrowthMib.toFixed(1)} MiB`,
} as const satisfies Record<string, Check>;
