/** `ctl catalog`: the catalog that is acted on, and why control's own file may not be. */
import { buildCommand } from "@stricli/core";
import { type GetCatalogResponse, GetCatalogResponseSchema } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  type CtlContext,
  FORM_ALIASES,
  SCREEN_FLAGS,
  type ScreenFlags,
} from "../../command.ts";
import { screenForm, writeScreen } from "../../live/screen.ts";
import { toRecord } from "../../record.ts";

interface ShowFlags extends ScreenFlags {
  readonly text: boolean;
}

export const showCatalog = buildCommand({
  docs: {
    brief: "Show which catalog is acted on, and how control's file stands against it",
    fullDescription:
      "With --text the catalog itself, as it was applied: for plan, apply or a backup.",
  },
  parameters: {
    flags: {
      ...SCREEN_FLAGS,
      text: { kind: "boolean", default: false, brief: "Only the text of the catalog" },
    },
    aliases: FORM_ALIASES,
  },
  async func(this: CtlContext, flags: ShowFlags) {
    const form = screenForm(flags);
    if (flags.text && form !== "table") {
      throw new SyntaxError("--text has one form, the catalog's own: leave the other out");
    }
    const request = { text: flags.text || form !== "table" };
    const answer = await call(
      this,
      flags,
      (client) => client.getCatalog(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    writeScreen(this.io, form, {
      text: () => flags.text ? answer.text : formatCatalog(answer),
      record: () => toRecord(GetCatalogResponseSchema, answer),
    });
  },
});

/** What is acted on, and what is wrong with the file. */
export function formatCatalog(answer: GetCatalogResponse): string {
  const { revision, models, file, fileState, fileDetail } = answer;
  const acted = revision === 0n
    ? "No catalog was ever applied"
    : `Revision ${revision} is acted on: ${models} model${models === 1 ? "" : "s"}`;
  // Complaints are lines of their own, each with its place, and stay so.
  const detail = fileDetail === "" ? "" : `:\n${fileDetail.trimEnd()}`;
  return `${acted}\nFile ${file} is ${fileState}${detail}\n`;
}
