/** `ctl config show`: one context as it is acted on. */
import { buildCommand } from "@stricli/core";
import { stringify } from "yaml";
import { HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";
import type { CtlConfigFile } from "../../config_file.ts";

interface ShowFlags {
  readonly json: boolean;
}

export const showContext = buildCommand({
  docs: {
    brief: "Show one context: by default the current one",
    fullDescription: "It has the names of files with keys and tokens, never what is in them.",
  },
  parameters: {
    flags: { json: { kind: "boolean", default: false, brief: "As JSON" } },
    positional: {
      kind: "tuple",
      parameters: [{
        brief: "Its name; by default the current one",
        parse: String,
        placeholder: "context",
        optional: true,
      }],
    },
  },
  async func(this: CtlContext, { json }: ShowFlags, name?: string) {
    this.io.out(formatContext(await this.loadConfig(), { name, json }));
  },
});

/** Throws `not_found` for a context that is not there. */
export function formatContext(
  { file, config }: CtlConfigFile,
  { name = config.current, json }: { readonly name?: string | undefined; readonly json: boolean },
): string {
  const found = config.contexts.find((context) => context.name === name);
  if (found === undefined) {
    const names = config.contexts.map((context) => context.name).join(", ");
    throw new HeddleError("not_found", `No context "${name}" in ${file}: it has ${names}`);
  }
  const record = { file, current: name === config.current, ...found };
  return json ? `${JSON.stringify(record, null, 2)}\n` : stringify(record);
}
