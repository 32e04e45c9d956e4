/** Lets control itself judge a catalog before anything is started. */
import { dirname, join } from "node:path";
import { HeddleError } from "@heddle/proto/error";

/** Throws `invalid_input` with control's complaints, a line each. */
export async function checkCatalog(bin: string, file: string): Promise<void> {
  const output = await new Deno.Command(join(bin, "heddle-control"), {
    args: ["--check-catalog", file],
    env: { HEDDLE_DENO: Deno.execPath(), HEDDLE_STATE: dirname(file) },
    stdin: "null",
  }).output();
  if (output.success) return;
  const decoder = new TextDecoder();
  const text = decoder.decode(output.stderr).trim() || decoder.decode(output.stdout).trim();
  throw new HeddleError("invalid_input", text.replace(/^heddle-control: /, ""));
}
