/** Limits on the command line, and in tables. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { BudgetPeriod, type Limits, type LimitsSchema } from "@heddle/proto/gen/tenancy";
import { formatBudget, parseBudget } from "./units.ts";

/** What takes a limit away. */
const NONE = "none";

export interface LimitFlags {
  readonly rpm?: string;
  readonly tpm?: string;
  readonly concurrent?: string;
  readonly budget?: string;
  readonly models?: string;
}

const flag = (placeholder: string, brief: string) =>
  ({ kind: "parsed", parse: String, optional: true, placeholder, brief }) as const;

/** Beside COMMON_FLAGS. */
export const LIMIT_FLAGS = {
  rpm: flag("number", "Requests per minute, or none"),
  tpm: flag("number", "Tokens per minute, or none"),
  concurrent: flag("number", "Requests at a time, or none"),
  budget: flag("units/period", "Units per day or month, e.g. 100/month, or none"),
  models: flag("names", "Models that may be used, separated by commas, or none for all"),
} as const;

/** The names that control has for each flag. */
const NAMES = {
  rpm: "requests_per_minute",
  tpm: "tokens_per_minute",
  concurrent: "concurrent_requests",
  budget: "budget",
  models: "models",
} as const satisfies Record<keyof LimitFlags, string>;

/** The limits that the flags give, and the names of those that they say nothing about. */
export function limitsOf(flags: LimitFlags): {
  readonly limits: MessageInitShape<typeof LimitsSchema>;
  readonly keep: string[];
} {
  const { rpm = NONE, tpm = NONE, concurrent = NONE, budget = NONE, models = NONE } = flags;
  const keep = Object.entries(NAMES)
    .filter(([name]) => !Object.entries(flags).some(([given, value]) => given === name && value))
    .map(([, name]) => name);
  return {
    keep,
    limits: {
      ...(rpm === NONE ? {} : { requestsPerMinute: wholeNumber("--rpm", rpm) }),
      ...(tpm === NONE ? {} : { tokensPerMinute: wholeNumber("--tpm", tpm) }),
      ...(concurrent === NONE
        ? {}
        : { concurrentRequests: Number(wholeNumber("--concurrent", concurrent)) }),
      ...(budget === NONE ? {} : parseBudget(budget)),
      ...(models === NONE ? {} : { models: { items: words(models) } }),
    },
  };
}

/** "60 rpm, 8 at a time"; empty when nothing is limited. */
export function formatLimits(limits: Limits | undefined): string {
  if (limits === undefined) return "";
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, budgetMicro } = limits;
  return [
    ...(requestsPerMinute === undefined ? [] : [`${requestsPerMinute} rpm`]),
    ...(tokensPerMinute === undefined ? [] : [`${tokensPerMinute} tpm`]),
    ...(concurrentRequests === undefined ? [] : [`${concurrentRequests} at a time`]),
    ...(budgetMicro === undefined || limits.budgetPeriod === BudgetPeriod.UNSPECIFIED
      ? []
      : [`budget ${formatBudget(budgetMicro, limits.budgetPeriod)}`]),
    ...(limits.models === undefined ? [] : [`models ${limits.models.items.join(" ") || "none"}`]),
  ].join(", ");
}

/** "a, b" as two words. */
export function words(text: string): string[] {
  return text.split(",").map((word) => word.trim()).filter((word) => word !== "");
}

function wholeNumber(flag: string, text: string): bigint {
  if (/^\d{1,15}$/.test(text)) return BigInt(text);
  throw new SyntaxError(`want a whole number or none for ${flag}, it is "${text}"`);
}
