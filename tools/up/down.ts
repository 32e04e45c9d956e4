/** `deno task down`: stops what `deno task up` started, also when that was itself killed. */
import { dirname } from "node:path";
import { HeddleError } from "@heddle/proto/error";
import { stopEngines } from "./cluster.ts";
import { findByArgument } from "./find_process.ts";
import { DOWN_HELP, parseUpOptions } from "./options.ts";
import { readSession, removeSession, type Session } from "./session_file.ts";
import { orderStop } from "./stop_order.ts";
import { say, stateDirectory } from "./terminal.ts";

/** An orphan that has not ended after SIGTERM by then gets SIGKILL. */
const STOP_TIMEOUT_MS = 15_000;
const POLL_MS = 100;

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
    if (session === undefined) {
      say(`Nothing is up in ${state}`);
      return 0;
    }
    if (!await orderStop(session, say)) await stopOrphans(session);
    await removeSession(state);
    return 0;
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
    say(error.message);
    return 2;
  }
}

async function stopOrphans(session: Session): Promise<void> {
  say("The up that started it is gone; stopping what it left");
  for (const program of session.programs) {
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
