/** One answer that is no list: a text for people, and the same as one record for machines. */
import { stringify } from "yaml";
import { type FormFlags, outputOf } from "../command.ts";
import type { Io } from "../io.ts";

/** "table" is the text, whatever it looks like: it is the form for people everywhere. */
export type ScreenForm = "table" | "json" | "yaml";

/** The form that the flags ask for. Throws a `SyntaxError` for one that only a list has. */
export function screenForm(flags: FormFlags): ScreenForm {
  const output = outputOf(flags);
  if (output === "csv") {
    throw new SyntaxError(
      "Lists alone have -o csv, and this is none: -o json and -o yaml have all of it",
    );
  }
  return output === "wide" ? "table" : output;
}

/** Writes it in the form that is wanted; only what that form needs is made. */
export function writeScreen(
  io: Pick<Io, "out">,
  form: ScreenForm,
  screen: { readonly text: () => string; readonly record: () => unknown },
): void {
  if (form === "table") io.out(screen.text());
  else io.out(formatRecord(form, screen.record()));
}

/** One record for machines. */
export function formatRecord(form: "json" | "yaml", record: unknown): string {
  return form === "json" ? `${JSON.stringify(record, null, 2)}\n` : stringify(record);
}
