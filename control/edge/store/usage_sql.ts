/** What the statements of both stores have in common: columns, and rows as what they stand for. */
import type { Sums, UsageAnswer, UsageQuestion } from "../../core/usage/rollup.ts";

/** Column and member of every sum, in the order in which they are written. */
export const SUM_COLUMNS = [
  ["requests", "requests"],
  ["failures", "failures"],
  ["prompt_tokens", "promptTokens"],
  ["completion_tokens", "completionTokens"],
  ["cached_tokens", "cachedTokens"],
  ["reasoning_tokens", "reasoningTokens"],
  ["estimated", "estimated"],
  ["cost_micro", "costMicro"],
  ["duration_ms", "durationMs"],
  ["wasted_tokens", "wastedTokens"],
] as const satisfies readonly (readonly [string, keyof Sums])[];

const COLUMNS = ["hour", "key", "project", "model", "pool"] as const;

/** The question without its values. Columns are words of ours, never what somebody said. */
export function usageSelect(
  { by }: UsageQuestion,
): { columns: string; table: string; groups: string } {
  const told = COLUMNS.filter((column) => by.includes(column));
  const sums = SUM_COLUMNS.map(([column]) => `sum(${column}) AS ${column}`);
  const groups = told.length === 0 ? "" : `GROUP BY ${told.join(", ")} ORDER BY ${told.join(", ")}`;
  // Fewer rows where pools are not told apart, and also those from before there were any.
  const table = by.includes("pool") ? "usage_pool" : "usage_hour";
  return { columns: [...told, ...sums].join(", "), table, groups };
}

/** One row of the answer. */
export function usageAnswerOf(row: Readonly<Record<string, unknown>>): UsageAnswer {
  const sum = (column: string) => Number(row[column] ?? 0);
  return {
    hour: Number(row["hour"] ?? 0),
    key: String(row["key"] ?? ""),
    project: String(row["project"] ?? ""),
    model: String(row["model"] ?? ""),
    pool: String(row["pool"] ?? ""),
    sums: {
      requests: sum("requests"),
      failures: sum("failures"),
      promptTokens: sum("prompt_tokens"),
      completionTokens: sum("completion_tokens"),
      cachedTokens: sum("cached_tokens"),
      reasoningTokens: sum("reasoning_tokens"),
      estimated: sum("estimated"),
      costMicro: sum("cost_micro"),
      durationMs: sum("duration_ms"),
      wastedTokens: sum("wasted_tokens"),
    },
  };
}

/** Rows to forget in one go: more would hold up what else waits for the store. */
export const PRUNE_ROWS = 5_000;

/** What a row of the audit trail says of a change; nothing where it says nothing. */
export function changeOf(row: Readonly<Record<string, unknown>>): {
  readonly before?: string;
  readonly after?: string;
} {
  const [before, after] = [String(row["before"] ?? ""), String(row["after"] ?? "")];
  return { ...(before === "" ? {} : { before }), ...(after === "" ? {} : { after }) };
}
