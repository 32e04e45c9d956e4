/** Calls heddle-shim: the one program through which the agent touches processes. */
import { errorText, HeddleError } from "@heddle/proto/error";
import type { LiveMember } from "./launcher.ts";

/** Even on a node with thousands of processes a look at all of them takes well under a second. */
const CALL_MS_MAX = 20_000;

/** The shim found nothing of ours to act on. */
export const NOT_OURS = 3;

export interface ShimResult {
  readonly code: number;
  readonly lines: readonly string[];
}

/**
 * Runs one of the shim's short commands. Exit code 3 is a result; anything else but 0 throws
 * `system` with the shim's own words.
 */
export async function callShim(path: string, args: readonly string[]): Promise<ShimResult> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(path, {
      args: [...args],
      clearEnv: true,
      stdin: "null",
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).output();
  } catch (error) {
    throw cannotRun(path, error);
  }
  if (output.code !== 0 && output.code !== NOT_OURS) {
    const words = new TextDecoder().decode(output.stderr).trim() || `exit code ${output.code}`;
    throw new HeddleError("system", `Cannot ${args[0]} a process: ${words}`);
  }
  const lines = new TextDecoder().decode(output.stdout).split("\n").filter((line) => line !== "");
  return { code: output.code, lines };
}

/** Words for a shim that could not be run at all. */
export function cannotRun(path: string, error: unknown): HeddleError {
  const remedy = error instanceof Deno.errors.NotCapable
    ? "allow it with --allow-run, as bin/heddle-agent does"
    : error instanceof Deno.errors.NotFound
    ? "set `shim` in agent.yaml to where this release has bin/heddle-shim"
    : "see that it is an executable file and that /bin/sh exists";
  return new HeddleError("system", `Cannot run ${path}: ${errorText(error)}; ${remedy}`, {
    cause: error,
  });
}

const STATES: Readonly<Record<string, string>> = {
  R: "running",
  S: "sleeping",
  D: "uninterruptible: it waits for a driver or a disk",
  T: "stopped",
  t: "traced",
};

/** Reads lines of `members`: PID START STATE ROLE NAME. */
export function readMembers(lines: readonly string[]): readonly LiveMember[] {
  return lines.map((line) => {
    const [pid = "", , state = "", , ...name] = line.split(" ");
    const words = STATES[state.slice(0, 1)] ?? `state ${state}`;
    return { pid: Number(pid), words: `pid ${pid} (${name.join(" ") || "unnamed"}, ${words})` };
  });
}

/** An identifier of this start of the machine. */
export async function readBootId(path: string): Promise<string> {
  const { lines } = await callShim(path, ["boot-id"]);
  return lines[0] ?? "";
}
