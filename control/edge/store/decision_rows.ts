/**
 * Operators' decisions as rows: what kind, about whom, and the decision as JSON. A row that this
 * version cannot read was written by a newer one; starting without it would undo what an operator
 * decided, so it is an error and not skipped.
 */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import type { Decisions } from "../../core/world.ts";

export interface DecisionRow {
  readonly kind: string;
  /** Name of the node or model. */
  readonly subject: string;
  readonly value: string;
}

const decision = { by: z.string(), reason: z.string(), at: z.number() };
const VALUES = {
  node: z.object({ kind: z.enum(["cordon", "drain"]), ...decision }),
  pause: z.object(decision),
  scale: z.object({ replicas: z.number(), ...decision }),
  labels: z.record(z.string(), z.string()),
} as const;

export function decisionRows(decisions: Decisions): readonly DecisionRow[] {
  const rows = (kind: keyof typeof VALUES, values: ReadonlyMap<string, unknown>) =>
    [...values].map(([subject, value]) => ({ kind, subject, value: JSON.stringify(value) }));
  return [
    ...rows("node", decisions.nodes),
    ...rows("pause", decisions.paused),
    ...rows("scale", decisions.scales),
    ...rows("labels", decisions.labels),
  ];
}

/** The inverse of `decisionRows`. Throws `failed_precondition` for a row it does not know. */
export function decisionsOf(rows: readonly DecisionRow[]): Decisions {
  const unknown = rows.find(({ kind }) => !Object.hasOwn(VALUES, kind));
  if (unknown !== undefined) throw unreadable(unknown, "its kind is unknown");
  return {
    nodes: valuesOf(rows, "node", VALUES.node),
    paused: valuesOf(rows, "pause", VALUES.pause),
    scales: valuesOf(rows, "scale", VALUES.scale),
    labels: valuesOf(rows, "labels", VALUES.labels),
  };
}

function valuesOf<T>(
  rows: readonly DecisionRow[],
  kind: keyof typeof VALUES,
  schema: z.ZodType<T>,
): ReadonlyMap<string, T> {
  const values = new Map<string, T>();
  for (const row of rows) {
    if (row.kind !== kind) continue;
    const parsed = schema.safeParse(JSON.parse(row.value));
    if (!parsed.success) throw unreadable(row, z.prettifyError(parsed.error));
    values.set(row.subject, parsed.data);
  }
  return values;
}

function unreadable(row: DecisionRow, why: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot read the stored decision "${row.kind}" about "${row.subject}": ${why}. ` +
      "Was it written by a newer control?",
  );
}
