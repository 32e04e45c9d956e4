/** `ctl models`: every model of the catalog, and why one is not as it should be. */
import { formatDurationMs } from "@heddle/common/duration";
import { type ModelView, ModelViewSchema } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { listCommand } from "../../command.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import { joinReasons } from "../../status/reason_text.ts";
import type { Listing } from "../../table.ts";

export const listModels = listCommand(
  "List models with their replicas",
  async (client) =>
    modelListing((await client.listModels({}, { timeoutMs: CALL_TIMEOUT_MS })).models),
);

/** The table of models. */
export function modelListing(models: readonly ModelView[]): Listing<ModelView> {
  return {
    rows: models,
    empty:
      "The catalog has no models. Act on one that has with: heddle apply FILE, see docs/catalog.md",
    record: (model) => toRecord(ModelViewSchema, model),
    fields: fieldsOf(ModelViewSchema),
    columns: [
      { title: "MODEL", cell: (model) => model.name },
      { title: "READY", cell: readyOf },
      { title: "STARTING", cell: (model) => String(model.startingReplicas) },
      { title: "DRAINING", cell: (model) => String(model.drainingReplicas) },
      { title: "SCALING", cell: scalingOf },
      { title: "ALIASES", cell: (model) => model.aliases.join(", ") },
      { title: "REASON", cell: reasonOf },
      { title: "FAILED STARTS", cell: (model) => String(model.failedStarts), wide: true },
      { title: "WANTED BECAUSE", cell: (model) => model.scaleReason, wide: true },
    ],
  };
}

/** "1/1", and beside it what something else started: "0/0 +2 attached". */
function readyOf({ readyReplicas, desiredReplicas, attachedEngines }: ModelView): string {
  const attached = attachedEngines === 0 ? "" : ` +${attachedEngines} attached`;
  return `${readyReplicas}/${desiredReplicas}${attached}`;
}

/** "1–4", and where an operator wants it otherwise. */
function scalingOf(model: ModelView): string {
  const held = model.heldReplicas === undefined ? "" : ` held at ${model.heldReplicas}`;
  return `${model.minReplicas}–${model.maxReplicas}${held}${model.paused ? " paused" : ""}`;
}

function reasonOf(model: ModelView): string {
  const parts = [
    model.reason,
    model.backoffMs === undefined ? "" : `next start in ${formatDurationMs(model.backoffMs)}`,
    model.unsafeProfiles.length === 0 ? "" : `unsafe_env in ${model.unsafeProfiles.join(", ")}`,
  ];
  return joinReasons(parts);
}
