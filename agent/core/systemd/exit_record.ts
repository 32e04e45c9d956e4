/**
 * The record of how a unit ended, written by systemd's own hand: also when no agent runs. It is a
 * line of shell and no program of a release, because an engine outlives the release it came with.
 *
 * What systemd 252 writes down of a transient unit it reads differently at the next daemon-reload:
 * `ExecStopPost=+` is lost, and so is whatever has a dollar or a semicolon in it. So the line has
 * neither, and runs as the engine's user. The file is bound into the unit's own view, where the
 * engine can write to it too; that is why nothing but a unit that has ended makes it true.
 */
import type { ExitRecord } from "../shard/shard.ts";

/** Where a unit sees its record. */
export const EXIT_RECORD_PLACE = "/run/heddle-engine-exit";

/** Of a record, and of the file before there is one: a full disk then has no need of more. */
export const EXIT_RECORD_BYTES = 512;

/** First line of a record in this form. */
const FORM = "heddle-exit-1";

// Written over what is there, not anew.
const SCRIPT = `(echo ${FORM} && /usr/bin/printenv SERVICE_RESULT EXIT_CODE EXIT_STATUS) ` +
  `1<>${EXIT_RECORD_PLACE}`;

/** Command line that writes the record. */
export const EXIT_RECORDER: readonly string[] = ["/bin/sh", "-c", SCRIPT];

/** Undefined when `text` is no record, or tells of no process. */
export function decodeExitRecord(text: string): ExitRecord | undefined {
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  const { code, status } = parsed;
  const outOfMemory = parsed.result === "oom-kill";
  if (code === "exited") {
    return /^\d+$/.test(status) ? { code: Number(status), signal: "", outOfMemory } : undefined;
  }
  if (code !== "killed" && code !== "dumped") return undefined;
  const number = SIGNALS.indexOf(status);
  return {
    ...(number > 0 ? { code: 128 + number } : {}),
    signal: `SIG${status}`,
    outOfMemory,
  };
}

/** Why systemd could not even start the program; undefined when it could, or nobody knows. */
export function startFailure(text: string): string | undefined {
  const { code, status } = parse(text) ?? {};
  return code === "exited" ? START_FAILURES[status ?? ""] : undefined;
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

interface Parsed {
  /** "success", "exit-code", "signal", "timeout", "oom-kill", … */
  readonly result: string;
  /** "exited", "killed" or "dumped". */
  readonly code: string;
  /** A number, or a signal's name without SIG. */
  readonly status: string;
}

function parse(text: string): Parsed | undefined {
  const [, result, code, status] =
    /^heddle-exit-1\n([a-z-]+)\n([a-z]+)\n([A-Z0-9]+)\n/.exec(text) ?? [];
  if (result === undefined || code === undefined || status === undefined) return undefined;
  return { result, code, status };
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
