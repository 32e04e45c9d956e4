/** One screen for people, and the same as one record for machines. */
import { stringify } from "yaml";
import type { Io } from "../io.ts";

/** Beside COMMON_FLAGS. */
export const SCREEN_FLAGS = {
  output: {
    kind: "enum",
    values: ["text", "json", "yaml"],
    optional: true,
    brief: "Form of the output",
  },
  json: { kind: "boolean", default: false, brief: "The same as --output json" },
} as const;

export type ScreenForm = (typeof SCREEN_FLAGS.output.values)[number];

export interface ScreenFlags {
  readonly output?: ScreenForm;
  readonly json: boolean;
}

/** The form that the flags ask for. */
export function screenForm(flags: ScreenFlags): ScreenForm {
  return flags.json ? "json" : flags.output ?? "text";
}

/** Writes it in the form that is wanted; only what that form needs is made. */
export function writeScreen(
  io: Io,
  form: ScreenForm,
  screen: { readonly text: () => string; readonly record: () => unknown },
): void {
  if (form === "json") io.out(`${JSON.stringify(screen.record(), null, 2)}\n`);
  else if (form === "yaml") io.out(stringify(screen.record()));
  else io.out(screen.text());
}
