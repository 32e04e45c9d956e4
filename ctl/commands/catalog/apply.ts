/** `ctl apply FILE`: control acts on a catalog from now on. */
import { buildCommand } from "@stricli/core";
import type { ApplyCatalogResponse } from "@heddle/proto/gen/admin";
import { HeddleError } from "@heddle/proto/error";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { call, COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";
import { CATALOG_PARAMETER, readCatalog } from "./catalog_text.ts";

interface ApplyFlags extends CommonFlags {
  readonly yes: boolean;
}

export const apply = buildCommand({
  docs: {
    brief: "Act on a catalog from now on",
    fullDescription: "Control stores the text and acts on it, also after a restart. Its own " +
      "catalog file counts again when that file changes.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      yes: {
        kind: "boolean",
        default: false,
        brief: "Also when it is empty, or would stop more than a quarter of what runs",
      },
    },
    positional: CATALOG_PARAMETER,
  },
  async func(this: CtlContext, flags: ApplyFlags, file: string) {
    const request = { ...await readCatalog(this, file), yes: flags.yes };
    const options = { timeoutMs: CALL_TIMEOUT_MS };
    const { answer, before } = await call(this, flags, async (client) => {
      const { revision } = await client.getCatalog({}, options);
      return { before: revision, answer: await client.applyCatalog(request, options) };
    });
    this.io.out(applied(answer, { file, before }));
  },
});

/** What to say of an applied catalog. Throws `failed_precondition` for one that waits for a yes. */
export function applied(
  answer: ApplyCatalogResponse,
  { file, before }: { readonly file: string; readonly before: bigint },
): string {
  const { revision } = answer;
  // Control acts on the same text already, and keeps its number.
  if (answer.applied && revision === before) {
    return `Nothing changed: ${file} is what is acted on already, revision ${revision}\n`;
  }
  if (answer.applied) return `Applied as revision ${revision}; watch it with: heddle models\n`;
  throw new HeddleError(
    "failed_precondition",
    `Not applied: ${answer.waitDetail}. Look at it with: heddle plan ${file}. If that is what you want: ` +
      `heddle apply ${file} --yes`,
  );
}
