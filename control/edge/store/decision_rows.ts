/**
 * Operators' decisions as rows: what kind, about whom, and the decision as JSON. A row that this
 * version cannot read was written by a newer one; starting without it would undo what an operator
 * decided, so it is an error and not skipped.
 */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import type { StoreRecord } from "../../core/store_record.ts";
import type { Decisions } from "../../core/world.ts";

export interface DecisionRow {
  readonly kind: string;
  /** Name of the node, model or replica. */
  readonly subject: string;
  /** JSON; undefined removes the row. */
  readonly value: string | undefined;
}

export type DecisionRecord = Extract<
  StoreRecord,
  { readonly kind: "node_decision" | "paused" | "scale" | "labels" | "replica_decision" | "strike" }
>;

const decision = { by: z.string(), reason: z.string(), at: z.number() };
const VALUES = {
  node_decision: z.object({ kind: z.enum(["cordon", "drain"]), ...decision }),
  paused: z.object(decision),
  scale: z.object({ replicas: z.number(), ...decision }),
  labels: z.record(z.string(), z.string()),
  replica_decision: z.object({ kind: z.enum(["restart", "stop", "stop_at_once"]), ...decision }),
  strike: z.object({ issuedBefore: z.number(), ...decision }),
} as const satisfies Record<DecisionRecord["kind"], z.ZodType>;

export function decisionRow(record: DecisionRecord): DecisionRow {
  const value = record.kind === "labels" ? record.labels : record.decision;
  return {
    kind: record.kind,
    subject: subjectOf(record),
    value: value === undefined ? undefined : JSON.stringify(value),
  };
}

function subjectOf(record: DecisionRecord): string {
  if ("node" in record) return record.node;
  if ("struck" in record) return record.struck;
  return "model" in record ? record.model : record.replica;
}

/** What the rows say together. Throws `failed_precondition` for a row it does not know. */
export function decisionsOf(rows: readonly DecisionRow[]): Decisions {
  const unknown = rows.find(({ kind }) => !Object.hasOwn(VALUES, kind));
  if (unknown !== undefined) throw unreadable(unknown, "its kind is unknown");
  return {
    nodes: valuesOf(rows, "node_decision", VALUES.node_decision),
    paused: valuesOf(rows, "paused", VALUES.paused),
    scales: valuesOf(rows, "scale", VALUES.scale),
    labels: valuesOf(rows, "labels", VALUES.labels),
    replicas: valuesOf(rows, "replica_decision", VALUES.replica_decision),
    struck: valuesOf(rows, "strike", VALUES.strike),
  };
}

function valuesOf<T>(
  rows: readonly DecisionRow[],
  kind: DecisionRecord["kind"],
  schema: z.ZodType<T>,
): ReadonlyMap<string, T> {
  const values = new Map<string, T>();
  for (const row of rows) {
    if (row.kind !== kind || row.value === undefined) continue;
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
