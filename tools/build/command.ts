/** Runs the commands that a build consists of. */
import { HeddleError } from "@heddle/proto/error";
import { ROOT } from "../repository.ts";
import { run } from "../run.ts";

/** Runs a command at the repository's root to its end. Throws `system` with its words. */
export async function execute(command: string, args: readonly string[]): Promise<string> {
  const { ok, output } = await run(command, { args, cwd: ROOT });
  if (ok) return output;
  const called = [command.replace(/^.*\//, ""), args[0]].join(" ");
  throw new HeddleError("system", `Cannot build: "${called}" failed:\n${output.trim()}`);
}
