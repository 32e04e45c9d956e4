/** `deno task down`: stops what `deno task up` started, also when that was itself killed. */
import { dirname } from "node:path";
import { HeddleError } from "@heddle/proto/error";
import { claimedBy } from "./processes/claim.ts";
import { stopEngines } from "./processes/cluster.ts";
import { findByArgument } from "./processes/find_process.ts";
import { leftPrograms } from "./processes/left_programs.ts";
import { DOWN_HELP, parseUpOptions } from "./options.ts";
import { readSession, removeSession, type Session } from "./processes/session_file.ts";
import { orderStop } from "./processes/stop_order.ts";
import { launcherDirectory, say, stateDirectory } from "./terminal.ts";

/** An orphan that has not ended after SIGTERM by then gets SIGKILL. */
const STOP_TIMEOUT_MS = 15_000;
const POLL_MS = 100;
/** `up` bounds every step of its stop; all together, and some more. */
const OWNER_TIMEOUT_MS = 120_000;

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = parseUpOptions(args);
    if (options.help) {
      say(DOWN_HELP.trimEnd());
      return 0;
    }
    const state = stateDirectory(options);
    const session = await readSession(state);
    if (session !== undefined && await orderStop(session, say)) {
      await awaitRelease(state);
      return 0;
    }
    if (await stopOwner(state)) return 0;
    const programs = session?.programs ??
      await leftPrograms(state, await launcherDirectory(options));
    if (session === undefined && !await anyRuns(programs)) {
      say(`Nothing is up in ${state}`);
      return 0;
    }
    await stopOrphans(programs);
    await removeSession(state);
    return 0;
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
    say(error.message);
    return error.code === "invalid_input" ? 2 : 1;
  }
}

/** For an `up` that cannot be given an order: its note is lost, or it has no ear yet. */
async function stopOwner(state: string): Promise<boolean> {
  const owner = await claimedBy(state);
  if (owner === undefined) return false;
  say(`Stopping the up with pid ${owner}, and everything that it started`);
  Deno.kill(owner, "SIGTERM");
  await awaitRelease(state);
  say("Stopped it");
  return true;
}

// A new `up` right after this one must find the directory free.
async function awaitRelease(state: string): Promise<void> {
  const deadline = performance.now() + OWNER_TIMEOUT_MS;
  for (;;) {
    const owner = await claimedBy(state);
    if (owner === undefined) return;
    if (performance.now() > deadline) {
      throw new HeddleError("unavailable", `Cannot stop the up with pid ${owner}: it goes on`);
    }
    await new Promise((tick) => setTimeout(tick, POLL_MS));
  }
}

async function anyRuns(programs: Session["programs"]): Promise<boolean> {
  for (const { config } of programs) {
    if ((await findByArgument(config)).length > 0) return true;
  }
  return false;
}

async function stopOrphans(programs: Session["programs"]): Promise<void> {
  say("The up that started it is gone; stopping what it left");
  for (const program of programs) {
    const pids = await findByArgument(program.config);
    for (const pid of pids) Deno.kill(pid, "SIGTERM");
    const deadline = performance.now() + STOP_TIMEOUT_MS;
    while ((await findByArgument(program.config)).length > 0) {
      if (performance.now() > deadline) {
        for (const pid of await findByArgument(program.config)) Deno.kill(pid, "SIGKILL");
      }
      await new Promise((tick) => setTimeout(tick, POLL_MS));
    }
    if (pids.length > 0) say(`Stopped ${program.label}`);
    if (program.launcher.endsWith("heddle-agent")) {
      say(
        await stopEngines({
          label: program.label,
          launcher: program.launcher,
          args: ["--config", program.config],
          env: { HEDDLE_DENO: Deno.execPath(), HEDDLE_STATE: dirname(program.config) },
          logFile: "/dev/null",
        }),
      );
    }
  }
}
