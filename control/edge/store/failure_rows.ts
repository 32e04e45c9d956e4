/**
 * What failed to start as rows: by model, as JSON. A row that this version cannot read is left out: what
 * it says is found out again by one more try, and keeping control from starting would be worse.
 */
import { logger } from "@heddle/common/log";
import { z } from "zod";
import type { Failures, FailuresRecord } from "../../core/deciding/failures.ts";

const log = logger("store");

export interface FailureRow {
  readonly model: string;
  /** JSON; undefined removes the row. */
  readonly value: string | undefined;
}

const failuresSchema = z.object({
  failedStarts: z.int().nonnegative(),
  lastFailure: z.exactOptional(z.string()),
  blocked: z.array(z.object({
    profile: z.string(),
    node: z.exactOptional(z.string()),
    reason: z.exactOptional(z.string()),
    message: z.string(),
    fingerprint: z.string(),
    told: z.array(z.object({ node: z.exactOptional(z.string()), what: z.string() })),
  })),
});

export function failureRow({ model, failures }: FailuresRecord): FailureRow {
  return { model, value: failures === undefined ? undefined : JSON.stringify(failures) };
}

/** By model; rows as they come from either database. */
export function failuresOf(
  rows: readonly Readonly<Record<string, unknown>>[],
): ReadonlyMap<string, Failures> {
  const all = new Map<string, Failures>();
  for (const row of rows) {
    const model = String(row["model"]);
    const parsed = failuresSchema.safeParse(jsonOf(String(row["value"])));
    if (parsed.success) all.set(model, parsed.data);
    else log.warning("Cannot read what is stored of failed starts; one more try tells", { model });
  }
  return all;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
