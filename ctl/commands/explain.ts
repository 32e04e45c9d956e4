/** `ctl explain MODEL`: why a model runs where it does, or does not run. */
import { buildCommand } from "@stricli/core";
import { formatDurationMs } from "@heddle/common/duration";
import {
  type ExplainResponse,
  ExplainResponseSchema,
  type PlacementView,
} from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { call, type CtlContext, FORM_ALIASES, SCREEN_FLAGS, type ScreenFlags } from "../command.ts";
import { screenForm, writeScreen } from "../live/screen.ts";
import { reasonText } from "../status/reason_text.ts";
import { toRecord } from "../record.ts";
import { visible } from "../table.ts";

export const explain = buildCommand({
  docs: { brief: "Say why a model is placed as it is, or is not" },
  parameters: {
    flags: SCREEN_FLAGS,
    aliases: FORM_ALIASES,
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "Name or alias of the model", placeholder: "model" }],
    },
  },
  async func(this: CtlContext, flags: ScreenFlags, model: string) {
    const form = screenForm(flags);
    const answer = await call(
      this,
      flags,
      (client) => client.explain({ model }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    writeScreen(this.io, form, {
      text: () => formatExplanation(answer),
      record: () => toRecord(ExplainResponseSchema, answer),
    });
  },
});

/** The summary, where replicas run and with what scores, then one line for each node not used. */
export function formatExplanation(answer: ExplainResponse): string {
  const lines = [`${answer.model}: ${visible(answer.summary)}`];
  if (answer.scaleReason !== "") {
    lines.push(`Wanted: ${answer.desiredReplicas}, ${visible(answer.scaleReason)}`);
  }
  if (answer.lastAttemptMs !== undefined) {
    lines.push(`Placement was last tried ${formatDurationMs(Number(answer.lastAttemptMs))} ago`);
  }
  for (const placement of answer.placements) lines.push(`  ${formatPlacement(placement)}`);
  if (answer.rejections.length > 0) {
    lines.push(answer.placements.length > 0 ? "Not used for one more:" : "Not used:");
  }
  for (const rejection of answer.rejections) {
    const where = [rejection.node, rejection.profile].filter((part) => part !== "").join(", ");
    lines.push(`  ${visible(`${where}: ${reasonText(rejection.reason, rejection.detail)}`)}`);
  }
  return `${lines.join("\n")}\n`;
}

function formatPlacement(placement: PlacementView): string {
  const scores = Object.entries(placement.scores).map(([name, score]) =>
    `${name} ${score.toFixed(2)}`
  );
  const why = scores.length === 0 ? "" : ` (${scores.join(", ")})`;
  const notes = placement.notes.map((note) => `; ${note}`).join("");
  return visible(
    `${placement.replicaId}: profile ${placement.profile} on ${placement.nodes.join(", ")}` +
      `${why}${notes}`,
  );
}
