/** `ctl audit`: who decided what, and when. */
import { buildCommand } from "@stricli/core";
import { type AuditRecord, AuditRecordSchema } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { type CtlContext, list, LIST_ALIASES, LIST_FLAGS, type ListFlags } from "../command.ts";
import { fieldsOf, toRecord } from "../record.ts";
import type { Listing } from "../table.ts";
import { formatTime } from "../time_text.ts";

interface AuditFlags extends ListFlags {
  readonly limit: number;
}

export const listAudit = buildCommand({
  docs: { brief: "List what operators decided, newest first" },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      limit: {
        kind: "parsed",
        parse: limitOf,
        default: "100",
        placeholder: "number",
        brief: "How many, 1000 at most",
      },
    },
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: AuditFlags) {
    await list(this, flags, async (client) => {
      const request = { limit: flags.limit };
      const { records } = await client.listAudit(request, { timeoutMs: CALL_TIMEOUT_MS });
      return auditListing(records);
    });
  },
});

/** The table of the audit trail. */
export function auditListing(records: readonly AuditRecord[]): Listing<AuditRecord> {
  return {
    rows: records,
    empty:
      "No operator has decided anything yet. What they decide is kept here, such as: cordon NODE",
    record: (record) => toRecord(AuditRecordSchema, record),
    fields: fieldsOf(AuditRecordSchema),
    columns: [
      { title: "WHEN", cell: ({ atMs }) => formatTime(Number(atMs)) },
      { title: "BY", cell: ({ by }) => by },
      { title: "DECISION", cell: ({ action }) => action.replaceAll("_", " ") },
      { title: "ABOUT", cell: ({ subject }) => subject },
      { title: "REASON", cell: ({ reason }) => reason },
    ],
  };
}

function limitOf(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= 1_000) return number;
  throw new SyntaxError(`want a number from 1 to 1000, it is "${text}"`);
}
