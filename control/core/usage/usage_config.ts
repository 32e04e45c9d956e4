/** The section `usage` of control.yaml. */
import { z } from "zod";
import { duration, parseDurationMs } from "@heddle/common/duration";

/** A router that was cut off overnight sends its records again in the morning. */
const KEEP_MS_MIN = 86_400_000;

/** Durations stay text here; `usageSettingsOf` turns them into ms. */
export const usageSchema = z.strictObject({
  time_zone: z.string().default("UTC").describe(
    'Where the days and months of budgets begin at midnight, e.g. "Europe/Berlin"',
  ),
  keep_records: duration().default("35d").describe(
    "How long the record of each request is kept; one that comes again later counts again",
  ),
  keep_hours: duration().default("400d").describe("How long sums by hour are kept"),
});

type UsageConfig = z.output<typeof usageSchema>;

/** What is kept of what was used. */
export interface UsageSettings {
  /** IANA name of where days and months begin at midnight. */
  readonly timeZone: string;
  readonly keepRecordsMs: number;
  readonly keepHoursMs: number;
}

export function usageSettingsOf(config: UsageConfig): UsageSettings {
  return {
    timeZone: config.time_zone,
    keepRecordsMs: parseDurationMs(config.keep_records) ?? NaN,
    keepHoursMs: parseDurationMs(config.keep_hours) ?? NaN,
  };
}

/** What is wrong with it, by key. */
export function usageConflicts(
  config: UsageConfig,
): readonly (readonly [keyof UsageConfig, string])[] {
  const found: [keyof UsageConfig, string][] = [];
  try {
    new Intl.DateTimeFormat("en", { timeZone: config.time_zone });
  } catch {
    found.push(["time_zone", `"${config.time_zone}" is no time zone, want e.g. "Europe/Berlin"`]);
  }
  for (const key of ["keep_records", "keep_hours"] as const) {
    if ((parseDurationMs(config[key]) ?? NaN) < KEEP_MS_MIN) found.push([key, "want at least 1d"]);
  }
  return found;
}
