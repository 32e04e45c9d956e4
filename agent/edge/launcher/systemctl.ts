/** Calls systemd's own programs: all that the agent knows of units, and does to them. */
import { errorText, HeddleError } from "@heddle/proto/error";

/** By absolute path: which program runs must not hang on a search. The permission set names them. */
export const SYSTEMD_RUN = "/usr/bin/systemd-run";
export const SYSTEMCTL = "/usr/bin/systemctl";

/** systemd answers in tens of milliseconds; a machine that swaps takes longer. */
const CALL_MS_MAX = 30_000;

export interface CallResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of them, whatever its exit code. Throws `system` when it cannot be run. */
export async function callSystemd(path: string, args: readonly string[]): Promise<CallResult> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(path, {
      args: [...args],
      clearEnv: true,
      // Words that are compared must not depend on a locale.
      env: { LC_ALL: "C", SYSTEMD_COLORS: "0", SYSTEMD_PAGER: "" },
      stdin: "null",
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).output();
  } catch (error) {
    throw cannotRunSystemd(path, error);
  }
  const decoder = new TextDecoder();
  return {
    code: output.code,
    stdout: decoder.decode(output.stdout),
    stderr: decoder.decode(output.stderr).trim(),
  };
}

/** Words for a program of systemd's that could not be run at all. */
export function cannotRunSystemd(path: string, error: unknown): HeddleError {
  const remedy = error instanceof Deno.errors.NotCapable
    ? "allow it with --allow-run, as bin/heddle-agent does"
    : error instanceof Deno.errors.NotFound
    ? "this machine has no systemd: set launcher to process in agent.yaml"
    : "see that systemd answers: systemctl status";
  return new HeddleError("system", `Cannot run ${path}: ${errorText(error)}; ${remedy}`, {
    cause: error,
  });
}
