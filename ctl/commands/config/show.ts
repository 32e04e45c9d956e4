/** `ctl config show`: one context as it is acted on. */
import { buildCommand } from "@stricli/core";
import { HeddleError } from "@heddle/proto/error";
import { type CtlContext, FORM_ALIASES, FORM_FLAGS, type FormFlags } from "../../command.ts";
import { formatRecord, type ScreenForm, screenForm } from "../../live/screen.ts";
import type { CtlConfigFile } from "../../config_file.ts";

export const showContext = buildCommand({
  docs: {
    brief: "Show one context: by default the current one",
    fullDescription: "It has the names of files with keys and tokens, never what is in them.",
  },
  parameters: {
    flags: FORM_FLAGS,
    aliases: FORM_ALIASES,
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
  async func(this: CtlContext, flags: FormFlags, name?: string) {
    const form = screenForm(flags);
    this.io.out(formatContext(await this.loadConfig(), { name, form }));
  },
});

/** Throws `not_found` for a context that is not there. */
export function formatContext(
  { file, config }: CtlConfigFile,
  { name = config.current, form }: {
    readonly name?: string | undefined;
    readonly form: ScreenForm;
  },
): string {
  const found = config.contexts.find((context) => context.name === name);
  if (found === undefined) {
    const names = config.contexts.map((context) => context.name).join(", ");
    throw new HeddleError("not_found", `No context "${name}" in ${file}: it has ${names}`);
  }
  const record = { file, current: name === config.current, ...found };
  // For people it is what they wrote.
  return formatRecord(form === "json" ? "json" : "yaml", record);
}
