/** The running programs of one `up`: started in order, stopped in the order that harms no request. */
import type { Laid } from "../layout/layout.ts";
import { Child, type ProgramSpec } from "./children.ts";

export class Cluster {
  readonly #control: Child;
  readonly #router: Child;
  readonly #agents: readonly Child[];

  constructor(laid: Laid, say: (line: string) => void) {
    this.#control = new Child(laid.control, say);
    this.#router = new Child(laid.router, say);
    this.#agents = laid.agents.map((spec) => new Child(spec, say));
  }

  /** Rejects never; resolves with a message when one of the programs cannot be kept running. */
  get gaveUp(): Promise<string> {
    return Promise.race([this.#control, this.#router, ...this.#agents].map((c) => c.gaveUp));
  }

  /**
   * The router first, so that streams end well while their engines live; then the agents and what
   * they started; control last.
   */
  async stop(say: (line: string) => void): Promise<void> {
    await this.#router.stop();
    say("Stopped the router");
    await Promise.all(this.#agents.map((agent) => agent.stop()));
    say(this.#agents.length === 1 ? "Stopped the agent" : `Stopped ${this.#agents.length} agents`);
    say("Stopping the engines");
    // At one time: an engine that takes its time must not make all others wait.
    await Promise.all(this.#agents.map(async ({ spec }) => say(await stopEngines(spec))));
    await this.#control.stop();
    say("Stopped control");
  }
}

/** Stops the engines that an agent started, which outlive it. Returns what to tell. */
export async function stopEngines(agent: ProgramSpec): Promise<string> {
  const output = await new Deno.Command(agent.launcher, {
    args: [...agent.args, "--stop-engines", "yes"],
    env: { ...agent.env, HEDDLE_LOG_FILE: agent.logFile },
    stdin: "null",
    stderr: "null",
    stdout: "piped",
    // Else an impatient second Ctrl-C ends it, and the engines stay. Spawned first: without that,
    // Deno ignores `detached`.
    detached: true,
  }).spawn().output();
  const text = new TextDecoder().decode(output.stdout).trim();
  if (output.success) return text === "" ? `Stopped the engines of ${agent.label}` : text;
  return `Could not stop all engines of ${agent.label}; see ${agent.logFile}`;
}
