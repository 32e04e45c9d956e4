/** `up --detach`: another `up` in the background, watched until it is ready. */
import { join } from "node:path";
import { cannotWrite, makeStateDirectory } from "./processes/claim.ts";
import { readSession } from "./processes/session_file.ts";
import { ROOT, say } from "./terminal.ts";

/** How often the background `up` is looked at; its own output is copied meanwhile. */
const POLL_MS = 100;

/** Starts `up` without `--detach` in a session of its own; returns its exit code, or 0 when ready. */
export async function detach(args: readonly string[], state: string): Promise<number> {
  const log = join(state, "logs", "up.log");
  await makeStateDirectory(state);
  await Deno.writeTextFile(log, "", { mode: 0o600 }).catch((error: unknown) => {
    throw cannotWrite(state, error);
  });
  const child = new Deno.Command(join(ROOT, "tools/up/background.sh"), {
    args: [
      log,
      Deno.execPath(),
      "run",
      "-P=up",
      "--quiet",
      "--no-prompt",
      join(ROOT, "tools/up/main.ts"),
      ...args.filter((arg) => arg !== "--detach"),
    ],
    env: { HEDDLE_UP_DETACHED: "1" },
    cwd: Deno.cwd(),
    stdin: "null",
    stdout: "null",
    stderr: "null",
    detached: true,
  }).spawn();
  const ended = child.status;
  let copied = 0;
  const copy = async () => {
    const text = await Deno.readTextFile(log).catch(() => "");
    const lines = text.slice(copied, text.lastIndexOf("\n") + 1);
    copied += lines.length;
    if (lines !== "") say(lines.trimEnd());
  };
  for (;;) {
    const status = await Promise.race([
      ended,
      new Promise<undefined>((tick) => setTimeout(() => tick(undefined), POLL_MS)),
    ]);
    const session = await readSession(state);
    await copy();
    if (status !== undefined) return status.code === 0 ? 1 : status.code;
    // The note may be of another `up`, that is or was there.
    if (session?.pid === child.pid && session.summary !== undefined) {
      child.unref();
      return 0;
    }
  }
}
