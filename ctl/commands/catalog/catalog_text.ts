/** The catalog that a command was given. */
import { errorText, HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";

export const CATALOG_PARAMETER = {
  kind: "tuple",
  parameters: [{
    parse: String,
    brief: "The catalog's file, or - for standard input",
    placeholder: "file",
  }],
} as const;

/** What the catalog calls itself in complaints, and its text. Throws `invalid_input`. */
export async function readCatalog(
  context: CtlContext,
  file: string,
): Promise<{ file: string; text: string }> {
  if (file === "-") return { file: "standard input", text: await context.readStdin() };
  try {
    return { file, text: await Deno.readTextFile(file) };
  } catch (error) {
    // The launcher lets every file be read that is there.
    const absent = error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.NotFound;
    const why = absent ? "there is no such file" : errorText(error);
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${why}`, {
      cause: error,
    });
  }
}
