/** The programs of a state directory whose note is lost, found by the configurations in it. */
import { join } from "node:path";
import type { Session } from "./session_file.ts";

/** In the order in which they are to be stopped. Those that do not run are among them. */
export async function leftPrograms(state: string, bin: string): Promise<Session["programs"]> {
  const agents = await namesIn(join(state, "agents"));
  const one = (label: string, launcher: string, config: string) => ({
    label,
    launcher: join(bin, launcher),
    config,
  });
  return [
    one("router", "heddle-router", join(state, "router", "router.yaml")),
    ...agents.map((name) =>
      one(`agent ${name}`, "heddle-agent", join(state, "agents", name, "agent.yaml"))
    ),
    one("control", "heddle-control", join(state, "control", "control.yaml")),
  ];
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
  } catch {
    return [];
  }
}
