/**
 * What every long-running program does the same way: read its flags, start its log, end on
 * signals, and turn an operating error into one line and an exit code.
 */
import { parseArgs } from "node:util";
import { HeddleError } from "@heddle/proto/error";
import { type LogFormat, logger, type LogLevel, redact, startLogging } from "./log.ts";
import { VERSION } from "./version.ts";

/** Flags that every program has, and what `extra` flags were given. */
export interface ProgramFlags {
  readonly config: string | undefined;
  readonly checkConfig: string | undefined;
  readonly extra: Readonly<Record<string, string | undefined>>;
}

/** What a first word stands for. */
export interface ProgramCommand {
  /** What follows it: "FILE...". */
  readonly usage: string;
  readonly purpose: string;
  /** The flags that it and what follows it mean. Throws `invalid_input` for what it cannot be. */
  readonly flags: (rest: readonly string[]) => readonly string[];
}

export interface Program {
  /** "heddle-router" */
  readonly name: string;
  readonly purpose: string;
  /** Further flags that take a value: name → what it is for. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Words that may stand first, as a shorter way to say some flags. */
  readonly commands?: Readonly<Record<string, ProgramCommand>>;
  /** Validates one file; throws `invalid_input` with every complaint. */
  readonly checkConfig: (file: string) => Promise<unknown>;
  /** Runs until `stop` aborts. Throwing a HeddleError ends the program with its message. */
  readonly run: (flags: ProgramFlags, stop: AbortSignal) => Promise<void>;
  /** SIGHUP; undefined when the program has nothing to reload. */
  readonly reload?: () => void;
}

/** Exit codes: 0 done, 1 an operating error, 2 flags or configuration are wrong. */
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** Runs a program from `main.ts` and exits the process with its code. */
export async function runProgram(program: Program): Promise<never> {
  let code: number;
  try {
    code = await execute(program);
  } catch (error) {
    code = reportFailure(program.name, error);
  }
  Deno.exit(code);
}

async function execute(program: Program): Promise<number> {
  const values = parseFlags(program);
  if (values["help"] === true) return print(helpText(program));
  if (values["version"] === true) return print(`${program.name} ${VERSION}\n`);
  const text = (name: string) => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  const checkConfig = text("check-config");
  if (checkConfig !== undefined) {
    await program.checkConfig(checkConfig);
    return print(`${checkConfig}: ok\n`);
  }
  await startLogging({
    format: oneOf<LogFormat>("log-format", text("log-format") ?? "text", ["text", "json"]),
    level: oneOf<LogLevel>("log-level", text("log-level") ?? "info", [
      "debug",
      "info",
      "warning",
      "error",
    ]),
  });
  const stop = new AbortController();
  const signals = listenForSignals(program, stop);
  try {
    const extra = Object.fromEntries(
      Object.keys(program.flags ?? {}).map((name) => [name, text(name)]),
    );
    await program.run({ config: text("config"), checkConfig, extra }, stop.signal);
    return 0;
  } finally {
    signals.remove();
  }
}

function parseFlags(program: Program): Record<string, unknown> {
  const values = ["config", "check-config", "log-format", "log-level"];
  const [first = "", ...rest] = Deno.args;
  const command = Object.entries(program.commands ?? {}).find(([name]) => name === first)?.[1];
  const asked = rest.some((each) => each === "--help" || each === "-h");
  const args = command === undefined ? Deno.args : asked ? ["--help"] : command.flags(rest);
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: false,
      options: Object.fromEntries([
        ...[...values, ...Object.keys(program.flags ?? {})].map((name) =>
          [name, { type: "string" as const }] as const
        ),
        ...["help", "version"].map((name) => [name, { type: "boolean" as const }] as const),
      ]),
    }).values;
  } catch (error) {
    const what = error instanceof Error ? error.message.split(". ")[0] : String(error);
    throw new HeddleError("invalid_input", `${what}. See ${program.name} --help`);
  }
}

function oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((word) => word === value);
  if (found === undefined) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use --${flag} ${value}: want ${allowed.join(" or ")}`,
    );
  }
  return found;
}

function listenForSignals(program: Program, stop: AbortController): { remove(): void } {
  const log = logger(program.name.replace("heddle-", ""));
  const onStop = () => {
    log.info("Stopping");
    stop.abort();
  };
  const onReload = () => program.reload?.();
  Deno.addSignalListener("SIGTERM", onStop);
  Deno.addSignalListener("SIGINT", onStop);
  Deno.addSignalListener("SIGHUP", onReload);
  return {
    remove() {
      Deno.removeSignalListener("SIGTERM", onStop);
      Deno.removeSignalListener("SIGINT", onStop);
      Deno.removeSignalListener("SIGHUP", onReload);
    },
  };
}

function reportFailure(name: string, error: unknown): number {
  const operating = error instanceof HeddleError;
  const text = operating ? error.message : error instanceof Error ? error.stack : String(error);
  const line = `${name}: ${redact(text)}\n`;
  Deno.stderr.writeSync(new TextEncoder().encode(line));
  return operating && error.code === "invalid_input" ? EXIT_USAGE : EXIT_FAILED;
}

function print(text: string): number {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
  return 0;
}

function helpText(program: Program): string {
  const rows = [
    ["--config FILE", "configuration file"],
    ["--check-config FILE", "validate a configuration file and exit"],
    ...Object.entries(program.flags ?? {}).map(([name, what]) => [`--${name} VALUE`, what]),
    ["--log-format text|json", "form of the log on standard error"],
    ["--log-level LEVEL", "debug, info, warning or error"],
    ["--version", "print the version and exit"],
  ];
  const lines = rows.map(([flag, what]) => `  ${flag?.padEnd(26)}${what}`);
  const commands = Object.entries(program.commands ?? {}).map(([name, { usage, purpose }]) =>
    `  ${program.name} ${name} ${usage}\n      ${purpose}\n`
  );
  return `${program.name}: ${program.purpose}\n\n${commands.join("")}${
    commands.length === 0 ? "" : "\n"
  }${lines.join("\n")}\n`;
}
