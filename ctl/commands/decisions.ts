/** `ctl decisions`: what operators decided and nobody has taken back. */
import { formatDurationMs } from "@heddle/common/duration";
import { type DecisionView, DecisionViewSchema } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { listCommand } from "../command.ts";
import { fieldsOf, toRecord } from "../record.ts";
import type { Listing } from "../table.ts";

export const listDecisions = listCommand(
  "List operators' decisions that hold: cordons, drains, pauses, scales, labels",
  async (client) =>
    decisionListing((await client.listDecisions({}, { timeoutMs: CALL_TIMEOUT_MS })).decisions),
);

/** The table of decisions. */
export function decisionListing(decisions: readonly DecisionView[]): Listing<DecisionView> {
  return {
    rows: decisions,
    empty:
      "No operator has decided anything that still holds. What was decided before: heddle audit",
    record: (decision) => toRecord(DecisionViewSchema, decision),
    fields: fieldsOf(DecisionViewSchema),
    columns: [
      { title: "DECISION", cell: ({ kind }) => kind },
      { title: "ABOUT", cell: aboutOf },
      { title: "VALUE", cell: ({ value }) => value },
      { title: "BY", cell: ({ by }) => by },
      {
        title: "FOR",
        cell: ({ decidedMs }) => decidedMs === undefined ? "" : formatDurationMs(Number(decidedMs)),
      },
      { title: "REASON", cell: ({ reason }) => reason },
    ],
  };
}

function aboutOf({ subject, orphaned }: DecisionView): string {
  return orphaned ? `${subject} (not there)` : subject;
}
