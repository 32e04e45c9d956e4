/** `ctl weights`: what Heddle fetched, or fetches, on every node. */
import { buildCommand } from "@stricli/core";
import { type NodeWeights, NodeWeightsSchema } from "@heddle/proto/gen/weights";
import { decodeWeightsState } from "@heddle/proto/weights_state";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  outputOf,
} from "../../command.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import { type Listing, writeListing } from "../../table.ts";
import { show } from "../../watch.ts";
import { callWeights } from "./client.ts";
import { formatBytes, formatShare } from "./quantity.ts";

export const listWeights = buildCommand({
  docs: { brief: "List what nodes fetched, and how far they are with what they fetch" },
  parameters: { flags: LIST_FLAGS, aliases: LIST_ALIASES },
  async func(this: CtlContext, flags: ListFlags) {
    await show(this, flags, async () => {
      const { weights } = await callWeights(
        this,
        flags,
        (client) => client.listWeights({}, { timeoutMs: CALL_TIMEOUT_MS }),
      );
      return (io) => writeListing(io, weightsListing(weights, io.terminal), outputOf(flags));
    });
  },
});

/** The table; `watched`: a person looks at it. */
function weightsListing(
  rows: readonly NodeWeights[],
  watched: boolean,
): Listing<NodeWeights> {
  return {
    rows,
    empty: "No node has fetched anything. Sources that are fetched begin with hf:// or https://",
    record: (row) => toRecord(NodeWeightsSchema, row),
    fields: fieldsOf(NodeWeightsSchema),
    columns: [
      { title: "NODE", cell: (row) => row.node },
      { title: "SOURCE", cell: (row) => row.weights?.want?.source ?? "" },
      { title: "VERSION", cell: (row) => (row.weights?.want?.version ?? "").slice(0, 12) },
      { title: "STATE", cell: (row) => decodeWeightsState(row.weights?.state ?? 0) },
      { title: "SIZE", cell: (row) => sizeOf(row, watched) },
      { title: "MODELS", cell: (row) => row.models.join(", ") },
      { title: "USED BY", cell: (row) => row.weights?.shardIds.join(", ") ?? "" },
      { title: "REASON", cell: reasonOf },
      { title: "FOLDER", cell: (row) => row.weights?.folder ?? "", wide: true },
      { title: "PATH", cell: (row) => row.weights?.path ?? "", wide: true },
    ],
  };
}

function sizeOf({ weights }: NodeWeights, watched: boolean): string {
  if (weights === undefined) return "";
  const { doneBytes: done, sizeBytes: total, bytesPerSecond: rate, secondsLeft } = weights;
  if (decodeWeightsState(weights.state) !== "fetching") {
    return total === 0n ? "" : formatBytes(total);
  }
  return total === 0n ? "asking" : formatShare({ done, total, rate, secondsLeft }, watched);
}

function reasonOf({ weights }: NodeWeights): string {
  return [weights?.reason ?? "", weights?.message ?? ""].filter((text) => text !== "").join(": ");
}
