/** Answers questions about usage, for operators and for the holder of one key. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type QueryUsageRequest, UsageBy, type UsageRowSchema } from "@heddle/proto/gen/tenancy";
import { HeddleError } from "@heddle/proto/error";
import { findHolder, isIn, pathOf } from "../../core/tenancy/chain.ts";
import type { Tenancy } from "../../core/tenancy/stored.ts";
import type { Calendar } from "../../core/usage/periods.ts";
import { addSums, type UsageAnswer, type UsageColumn } from "../../core/usage/rollup.ts";
import type { UsageStore } from "../store/store.ts";

/** Rows of one answer. */
const ROWS_MAX = 10_000;

/** Rows that are read for one: hours become days, and projects organisations, only here. */
const READ_MAX = 100_000;

const HOUR_MS = 3_600_000;
const OWN_MS = 30 * 24 * HOUR_MS;

export interface AnswerOptions {
  readonly store: Pick<UsageStore, "usage">;
  readonly tenancy: Tenancy;
  readonly calendar: Calendar;
  readonly now: number;
}

type Row = MessageInitShape<typeof UsageRowSchema>;
type By = Exclude<keyof typeof COLUMNS, "unspecified">;

/** What has to be read apart to tell this apart. */
const COLUMNS = {
  unspecified: [],
  key: ["key"],
  project: ["project"],
  model: ["model"],
  organisation: ["project"],
  hour: ["hour"],
  day: ["hour"],
  pool: ["pool"],
} as const satisfies Record<string, readonly UsageColumn[]>;

const WORDS: Readonly<Record<UsageBy, keyof typeof COLUMNS>> = {
  [UsageBy.UNSPECIFIED]: "unspecified",
  [UsageBy.KEY]: "key",
  [UsageBy.PROJECT]: "project",
  [UsageBy.MODEL]: "model",
  [UsageBy.ORGANISATION]: "organisation",
  [UsageBy.HOUR]: "hour",
  [UsageBy.DAY]: "day",
  [UsageBy.POOL]: "pool",
};

/** Throws `not_found` for a scope that is none, `invalid_input` for what cannot be told apart. */
export async function answerUsage(
  request: QueryUsageRequest,
  options: AnswerOptions,
): Promise<{ rows: Row[]; truncated: boolean }> {
  const { tenancy, now } = options;
  const by = request.by.map((each) => WORDS[each]).filter((word) => word !== undefined);
  const told = by.filter((word): word is By => word !== "unspecified");
  if (told.length < request.by.length) {
    throw new HeddleError("invalid_input", "Cannot tell usage apart by something unknown");
  }
  const of = request.scope === "" ? undefined : findHolder(tenancy, "show usage", request.scope);
  return await answer(options, {
    by: told,
    from: now - Number(request.sinceMs),
    until: now - Number(request.untilMs),
    ...(of === undefined ? {} : holderOf(tenancy, of)),
    ...(request.model === "" ? {} : { model: request.model }),
  });
}

/** What the key itself used, by day and model. */
export async function answerOwnUsage(
  key: string,
  sinceMs: number,
  options: AnswerOptions,
): Promise<Row[]> {
  const { rows } = await answer(options, {
    by: ["day", "model"],
    from: options.now - (sinceMs === 0 ? OWN_MS : sinceMs),
    until: options.now,
    key,
  });
  return rows;
}

function holderOf(tenancy: Tenancy, id: string): { key: string } | { projects: string[] } {
  if (tenancy.keys.has(id)) return { key: id };
  return { projects: [...tenancy.scopes.keys()].filter((each) => isIn(tenancy, each, id)) };
}

async function answer(
  options: AnswerOptions,
  asked: {
    readonly by: readonly By[];
    readonly from: number;
    readonly until: number;
    readonly key?: string;
    readonly projects?: readonly string[];
    readonly model?: string;
  },
): Promise<{ rows: Row[]; truncated: boolean }> {
  const { by, from, until, ...rest } = asked;
  const columns = [...new Set(by.flatMap((word): readonly UsageColumn[] => COLUMNS[word]))];
  const read = await options.store.usage({
    ...rest,
    by: columns,
    from: options.calendar.periods(Math.max(0, from)).hour,
    until: Math.max(0, until),
    limit: READ_MAX,
  });
  const rows = new Map<string, { readonly row: Row; sums: UsageAnswer["sums"] }>();
  for (const each of read) {
    const row = rowOf(each, by, options);
    const id = JSON.stringify([
      row.keyId,
      row.projectId,
      row.organisation,
      row.model,
      row.pool,
      `${row.fromS}`,
    ]);
    const found = rows.get(id);
    if (found === undefined) rows.set(id, { row, sums: each.sums });
    else found.sums = addSums(found.sums, each.sums);
  }
  const all = [...rows.values()].filter(({ sums }) => sums.requests > 0 || by.length === 0)
    .map(({ row, sums }) => ({ ...row, ...encodeSums(sums) }));
  return {
    rows: all.slice(0, ROWS_MAX),
    truncated: all.length > ROWS_MAX || read.length === READ_MAX,
  };
}

function rowOf(
  { hour, key, project, model, pool }: UsageAnswer,
  by: readonly By[],
  { tenancy, calendar }: AnswerOptions,
): Row {
  const row: Row = {};
  if (by.includes("model")) row.model = model;
  if (by.includes("pool")) row.pool = pool;
  if (by.includes("key")) {
    const stored = tenancy.keys.get(key);
    row.keyId = key;
    row.keyName = stored?.name ?? "";
    row.project = stored === undefined ? "" : pathOf(tenancy, stored.project);
  }
  if (by.includes("project")) {
    row.projectId = project;
    row.project = pathOf(tenancy, project);
  }
  if (by.includes("organisation")) row.organisation = pathOf(tenancy, project).split("/")[0] ?? "";
  if (by.includes("hour")) row.fromS = BigInt(Math.floor(hour / 1_000));
  else if (by.includes("day")) row.fromS = BigInt(Math.floor(calendar.dayOf(hour) / 1_000));
  return row;
}

function encodeSums(sums: UsageAnswer["sums"]) {
  return {
    requests: BigInt(sums.requests),
    failures: BigInt(sums.failures),
    promptTokens: BigInt(sums.promptTokens),
    completionTokens: BigInt(sums.completionTokens),
    cachedTokens: BigInt(sums.cachedTokens),
    reasoningTokens: BigInt(sums.reasoningTokens),
    estimated: BigInt(sums.estimated),
    costMicro: BigInt(sums.costMicro),
    durationMs: BigInt(sums.durationMs),
    wastedTokens: BigInt(sums.wastedTokens),
  };
}
