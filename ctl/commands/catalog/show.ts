/** `ctl catalog`: the catalog that is acted on, and why control's own file may not be. */
import { buildCommand } from "@stricli/core";
import { type GetCatalogResponse, GetCatalogResponseSchema } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { call, COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";
import { toRecord } from "../../record.ts";

interface ShowFlags extends CommonFlags {
  readonly json: boolean;
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
      ...COMMON_FLAGS,
      json: { kind: "boolean", default: false, brief: "As JSON" },
      text: { kind: "boolean", default: false, brief: "Only the text of the catalog" },
    },
  },
  async func(this: CtlContext, flags: ShowFlags) {
    const request = { text: flags.text || flags.json };
    const answer = await call(
      this,
      flags,
      (client) => client.getCatalog(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    if (flags.json) {
      this.io.out(`${JSON.stringify(toRecord(GetCatalogResponseSchema, answer), null, 2)}\n`);
    } else this.io.out(flags.text ? answer.text : formatCatalog(answer));
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
