/**
 * Reads what is stored of who may use what. A row that this version cannot read was written by a
 * newer one; starting without it would let in whom it keeps out, so it is an error and not skipped.
 */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { STORED_SCHEMAS, type TenancyRecord, type TenancyRow } from "../../core/tenancy/stored.ts";

/** The record that the row is. Throws `failed_precondition`. */
export function recordOf(row: TenancyRow): TenancyRecord {
  const { kind, id } = row;
  switch (kind) {
    case "scope":
      return { kind, id, value: valueOf(row, STORED_SCHEMAS.scope) };
    case "key":
      return { kind, id, value: valueOf(row, STORED_SCHEMAS.key) };
    case "limits":
      return { kind, id, value: valueOf(row, STORED_SCHEMAS.limits) };
    case "price":
      return { kind, id, value: valueOf(row, STORED_SCHEMAS.price) };
    default:
      throw unreadable(row, "its kind is unknown");
  }
}

function valueOf<T>(row: TenancyRow, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(JSON.parse(row.value));
  if (!parsed.success) throw unreadable(row, z.prettifyError(parsed.error));
  return parsed.data;
}

function unreadable({ kind, id }: TenancyRow, why: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot read the stored ${kind} "${id}": ${why}. Was it written by a newer control?`,
  );
}
