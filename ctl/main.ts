/**
 * `heddle`, the operator's command line. Exit codes: 0 done, 1 it failed, 2 it was called wrongly, 130
 * it was interrupted.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "@stricli/core";
import { app } from "./app.ts";
import { complete } from "./commands/completion.ts";
import type { CommonFlags, CtlContext, Folders } from "./command.ts";
import {
  type ConfigPlaces,
  type Context,
  findConfig,
  loadContext,
  readableByOthers,
} from "./config.ts";
import { type Io, processIo, terminalAsk } from "./io.ts";

/** Exit codes, whatever the library's are. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** What shells give to a program that SIGINT ended. */
const EXIT_INTERRUPTED = 130;

/** After Ctrl-C, for the last lines of a command that ends by itself. The others are cut off. */
const LAST_WORDS_MS = 250;

if (import.meta.main) {
  const code = await main(Deno.args);
  Deno.exit(code);
}

/** Runs one command line and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const interrupted = new AbortController();
  const unread = Promise.withResolvers<void>();
  const io = quietAfter(processIo(unread.resolve), interrupted.signal);
  Deno.addSignalListener("SIGINT", () => interrupted.abort());
  const process = {
    stdout: { write: io.out },
    stderr: { write: io.err },
    env: { NO_COLOR: io.color ? undefined : "1" },
    // Left unset: the library only fills in what nobody has decided.
    exitCode: undefined as number | string | null | undefined,
  };
  let failed = false;
  const context: CtlContext = {
    process,
    io,
    signal: interrupted.signal,
    loadContext: contextLoader(io),
    loadConfig: () => findConfig(places()),
    folders: folders(),
    readStdin: () => new Response(Deno.stdin.readable).text(),
    bytes: { in: () => Deno.stdin.readable, out: writeBytes },
    ask: terminalAsk(io, interrupted.signal),
    fail: () => failed = true,
  };
  if (args[0] === "complete") {
    io.out(await complete(app, args.slice(args[1] === "--" ? 2 : 1), context));
    return 0;
  }
  const interruption = afterLastWords(interrupted.signal);
  // What goes on until Ctrl-C ends with `head` as well, which has what it wanted.
  await Promise.race([run(app, asked(args), context), interruption, unread.promise]);
  if (interrupted.signal.aborted) {
    processIo().err("Interrupted\n");
    return EXIT_INTERRUPTED;
  }
  const code = Number(process.exitCode ?? 0);
  if (code === 0) return failed ? EXIT_FAILED : 0;
  // The library's codes below zero say that the command line, not the command, was wrong.
  return code < 0 && code !== -1 ? EXIT_USAGE : EXIT_FAILED;
}

/** What a command complains of once it is interrupted, it complains of because it was. */
function quietAfter(io: Io, signal: AbortSignal): Io {
  return { ...io, err: (text) => signal.aborted ? undefined : io.err(text) };
}

function afterLastWords(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => setTimeout(resolve, LAST_WORDS_MS), { once: true });
  });
}

/** Nothing, and `help WORDS`, ask what there is. */
function asked(args: readonly string[]): readonly string[] {
  if (args.length === 0) return ["--help"];
  return args[0] === "help" ? [...args.slice(1), "--help"] : args;
}

function contextLoader(io: Pick<Io, "err">): (flags: CommonFlags) => Promise<Context> {
  // A list that is drawn again and again says it once.
  let warned = false;
  return async (flags) => {
    const tokenFile = flags.tokenFile ?? named("HEDDLE_TOKEN_FILE");
    const context = await loadContext(places(), { ...flags, tokenFile });
    if (context.token_file !== undefined && !warned) {
      const warning = await readableByOthers(context.token_file);
      if (warning !== undefined) io.err(`Warning: ${warning}\n`);
      warned = true;
    }
    return context;
  };
}

function writeBytes(bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}

function places(): ConfigPlaces {
  return {
    named: Deno.env.get("HEDDLE_CTL_CONFIG"),
    userConfig: userConfig(),
    // The launcher looks for them.
    running: named("HEDDLE_UPS")?.split(":") ?? [],
    // A release has no repository around it.
    repository: import.meta.url.endsWith("/ctl/main.ts")
      ? fileURLToPath(new URL("..", import.meta.url))
      : undefined,
  };
}

function folders(): Folders {
  return {
    authority: named("HEDDLE_CA") ?? join(userConfig() ?? "/root/.config", "heddle", "ca"),
    certificates: named("HEDDLE_TLS"),
  };
}

function userConfig(): string | undefined {
  const home = Deno.env.get("HOME");
  return Deno.env.get("XDG_CONFIG_HOME") ?? (home && join(home, ".config"));
}

// An empty variable says as much as none.
function named(variable: string): string | undefined {
  const value = Deno.env.get(variable);
  return value === "" ? undefined : value;
}
