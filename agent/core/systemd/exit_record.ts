/**
 * The record of how a unit ended, written by systemd's own hand: also when no agent runs. It is a
 * line of shell and no program of a release, because an engine outlives the release it came with.
 */
import { z } from "zod";
import type { ExitRecord } from "../shard/shard.ts";

// Its words are systemd's: nothing in them needs escaping.
const SCRIPT = `umask 077 && printf ` +
  `'{"version":1,"service_result":"%s","exit_code":"%s","exit_status":"%s"}\\n' ` +
  `"$SERVICE_RESULT" "$EXIT_CODE" "$EXIT_STATUS" >"$1.tmp" && mv -f "$1.tmp" "$1"`;

const schema = z.object({
  version: z.literal(1),
  /** "success", "exit-code", "signal", "timeout", "oom-kill", … */
  service_result: z.string(),
  /** "exited", "killed" or "dumped"; empty when no process was started. */
  exit_code: z.string(),
  /** A number, or a signal's name without SIG. */
  exit_status: z.string(),
});

/** Command line that writes the record to `file`, whole or not at all. */
export function exitRecorder(file: string): readonly string[] {
  return ["/bin/sh", "-c", SCRIPT, "sh", file];
}

/** Undefined when `text` is no record, or tells of no process. */
export function decodeExitRecord(text: string): ExitRecord | undefined {
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  const { exit_code, exit_status } = parsed;
  const outOfMemory = parsed.service_result === "oom-kill";
  if (exit_code === "exited") {
    return /^\d+$/.test(exit_status)
      ? { code: Number(exit_status), signal: "", outOfMemory }
      : undefined;
  }
  if (exit_code !== "killed" && exit_code !== "dumped") return undefined;
  const number = SIGNALS.indexOf(exit_status);
  return {
    ...(number > 0 ? { code: 128 + number } : {}),
    signal: `SIG${exit_status}`,
    outOfMemory,
  };
}

/** Why systemd could not even start the program; undefined when it could, or nobody knows. */
export function startFailure(text: string): string | undefined {
  const { exit_code, exit_status } = parse(text) ?? {};
  return exit_code === "exited" ? START_FAILURES[exit_status ?? ""] : undefined;
}

/** Exit codes of systemd's own between fork and exec: `man systemd.exec`. */
const START_FAILURES: Readonly<Record<string, string>> = {
  "200": "its user may not enter its working directory",
  "202": "its standard input, output or error could not be set up",
  "203": "the program does not exist on this node, or the engines' user may not run it",
  "209": "its log could not be opened",
  "214": "its scheduling could not be set up",
  "216": "the engines' group does not exist",
  "217": "the engines' user does not exist: create it, or name another in engine_user",
  "226": "its namespace could not be set up",
  "227": "no new privileges could not be set up",
  "228": "its system call filter could not be set up",
  "238": "its state directory could not be made",
};

function parse(text: string): z.output<typeof schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Linux's signals by number, alike on x86-64 and arm64. */
const SIGNALS: readonly string[] = [
  "",
  "HUP",
  "INT",
  "QUIT",
  "ILL",
  "TRAP",
  "ABRT",
  "BUS",
  "FPE",
  "KILL",
  "USR1",
  "SEGV",
  "USR2",
  "PIPE",
  "ALRM",
  "TERM",
  "STKFLT",
  "CHLD",
  "CONT",
  "STOP",
  "TSTP",
  "TTIN",
  "TTOU",
  "URG",
  "XCPU",
  "XFSZ",
  "VTALRM",
  "PROF",
  "WINCH",
  "IO",
  "PWR",
  "SYS",
];
