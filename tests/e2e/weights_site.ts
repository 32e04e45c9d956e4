/** A control and an agent as processes, with a hub of the test's own, for tests of weights. */
import { fail } from "node:assert/strict";
import { join } from "node:path";
import { EVENTUALLY_MS_MAX, ROOT, runCommand } from "./heddle.ts";

const POLL_MS = 500;

export interface Laid {
  readonly root: string;
  readonly control: string;
  readonly catalog: string;
  readonly ctl: string;
  readonly agent: string;
  /** The node's folder of models. */
  readonly models: string;
  readonly agentEnv: Readonly<Record<string, string>>;
  readonly programs: readonly {
    readonly path: string;
    readonly args: string[];
    env: Record<string, string>;
  }[];
}

export interface SiteOptions {
  /** Base URL of the hub that the node fetches from. */
  readonly hub: string;
  readonly catalog: string;
  /** More lines of control.yaml. */
  readonly control?: readonly string[];
}

/** Files and ports for one control and one agent, below a folder of their own. */
export async function layOut(
  { hub, catalog: models, control: more = [] }: SiteOptions,
): Promise<Laid> {
  const root = await Deno.makeTempDir({ prefix: "heddle-weights-" });
  const [agents, admin, metrics, agentMetrics, engines] = freePorts(5);
  const write = async (path: string, text: string) => {
    await Deno.mkdir(join(root, path, ".."), { recursive: true });
    await Deno.writeTextFile(join(root, path), text);
    return join(root, path);
  };
  for (const folder of ["models", "engines"]) await Deno.mkdir(join(root, folder));
  const own = JSON.stringify({
    HEDDLE_DENO: Deno.execPath(),
    HOME: Deno.env.get("HOME") ?? "/root",
  });
  const catalog = await write("control/catalog.yaml", models);
  const control = await write(
    "control/control.yaml",
    [
      "cluster: t",
      `agents: { listen: "127.0.0.1:${agents}" }`,
      `admin: { listen: "127.0.0.1:${admin}" }`,
      `metrics: { listen: "127.0.0.1:${metrics}" }`,
      `catalog_file: ${root}/control/catalog.yaml`,
      `state_directory: ${root}/control`,
      ...more,
    ].join("\n"),
  );
  const agent = await write(
    "agent/agent.yaml",
    [
      "node: n1",
      `control: ["http://127.0.0.1:${agents}"]`,
      "address: 127.0.0.1",
      `state_directory: ${root}/agent`,
      `metrics: { listen: "127.0.0.1:${agentMetrics}" }`,
      `model_dirs: [${root}/models]`,
      `engine_ports: { first: ${engines}, last: ${(engines ?? 0) + 31}, block: 16 }`,
      `engine_installs: { folder: ${root}/engines, env: ${own} }`,
      `weights: { hub: "${hub}", reserve: 1MiB, env: ${own} }`,
    ].join("\n"),
  );
  const ctl = await write(
    "ctl/config.yaml",
    `current: t\ncontexts: [{ name: t, url: "http://127.0.0.1:${admin}" }]\n`,
  );
  const envOf = (state: string, read: string) => ({
    HEDDLE_DENO: Deno.execPath(),
    HEDDLE_STATE: join(root, state),
    HEDDLE_READ: read,
    HEDDLE_LOG_FILE: join(root, state, "log"),
  });
  const agentEnv = envOf("agent", `${root}/models,${root}/engines`);
  return {
    root,
    control,
    catalog,
    ctl,
    agent,
    models: join(root, "models"),
    agentEnv,
    programs: [
      { path: "bin/heddle-control", args: ["--config", control], env: envOf("control", "") },
      { path: "bin/heddle-agent", args: ["--config", agent], env: agentEnv },
    ],
  };
}

/** One of its programs. */
export function start({ path, args, env }: Laid["programs"][number]): Deno.ChildProcess {
  return new Deno.Command(join(ROOT, path), {
    args,
    env,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

/** Waits, and says what is seen instead when that lasts too long. */
export async function until(
  what: string,
  holds: () => Promise<boolean>,
  otherwise: () => Promise<string>,
): Promise<void> {
  const deadline = performance.now() + 2 * EVENTUALLY_MS_MAX;
  while (!await holds()) {
    if (performance.now() > deadline) fail(`waited in vain: ${what}\n${await otherwise()}`);
    await new Promise((tick) => setTimeout(tick, POLL_MS));
  }
}

function freePorts(count: number): readonly number[] {
  const listeners = Array.from(
    { length: count },
    () => Deno.listen({ port: 0, hostname: "127.0.0.1" }),
  );
  const ports = listeners.map(({ addr }) => addr.port);
  for (const listener of listeners) listener.close();
  return ports;
}

/** ctl against that control: what it prints, or how it refuses. */
export async function ctlOf({ ctl }: Laid, ...args: string[]): Promise<string> {
  const done = await runCommand(join(ROOT, "bin/heddle"), args, {
    HEDDLE_DENO: Deno.execPath(),
    HEDDLE_CTL_CONFIG: ctl,
  });
  return done.code === 0 ? done.stdout : done.stderr;
}

/** Ends what `start` began, then engines that are left, and removes all files. */
export async function clearAway(place: Laid, running: Deno.ChildProcess[]): Promise<void> {
  for (const each of running.reverse()) {
    each.kill("SIGTERM");
    await each.status;
  }
  const stopped = await runCommand(
    join(ROOT, "bin/heddle-agent"),
    ["--config", place.agent, "--stop-engines", "yes"],
    place.agentEnv,
  );
  if (stopped.code !== 0) fail(stopped.stderr);
  await Deno.remove(place.root, { recursive: true });
}
