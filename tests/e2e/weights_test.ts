/**
 * A real llama.cpp server, installed from a release's archive, serves a real model that was fetched
 * from a hub: all through control, an agent and ctl. Needs what llama_test.ts needs.
 */
import { deepEqual, equal, fail, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { releasesServer, tarGz } from "../../agent/edge/install/release_fake.ts";
import { fakeHub } from "../../agent/edge/fetch/hub_fake.ts";
import { EVENTUALLY_MS_MAX, ROOT, runCommand } from "./heddle.ts";

const server = Deno.env.get("HEDDLE_TEST_LLAMA_SERVER");
const model = Deno.env.get("HEDDLE_TEST_LLAMA_MODEL");
const POLL_MS = 500;

const MACHINE = Deno.build.arch === "x86_64" ? "x64" : "arm64";

/** A build from a package does not say its version: it calls itself 4711, or 4712. */
async function release(tag: string, build: number, program: Uint8Array) {
  const wrapper = `#!/bin/sh
case "$*" in *--version*) echo "version: ${build} (x)"; exit 0 ;; esac
exec "$(dirname "$0")/llama-real" "$@"
`;
  const bytes = await tarGz([
    { path: "bin/llama-real", body: program, mode: 0o755 },
    { path: "bin/llama-server", body: wrapper, mode: 0o755 },
  ]);
  return { [`llama-${tag}-bin-ubuntu-${MACHINE}.tar.gz`]: { bytes } };
}

Deno.test({
  name:
    "a node fetches a model and installs its engine because control wants it, serves, and upgrades",
  ignore: server === undefined || model === undefined,
  async fn() {
    const bytes = await Deno.readFile(model ?? "");
    await using hub = await fakeHub({ "q4.gguf": bytes });
    const program = await Deno.readFile(server ?? "");
    await using releases = await releasesServer({
      b1: await release("b1", 4711, program),
      b2: await release("b2", 4712, program),
    });
    const place = await layOut(hub.url, releases.url);
    const ctl = async (...args: string[]) => {
      const done = await runCommand(join(ROOT, "bin/heddle"), args, {
        HEDDLE_DENO: Deno.execPath(),
        HEDDLE_CTL_CONFIG: place.ctl,
      });
      return done.code === 0 ? done.stdout : done.stderr;
    };
    const seen = async () => await ctl("engines") + await ctl("replicas") + await ctl("weights");
    const running = place.programs.map(start);
    try {
      await until("the replica is ready", async () => {
        const text = await ctl("replicas", "-o", "json");
        return text.startsWith("[") && JSON.parse(text)[0]?.state === "ready";
      }, seen);
      match(await ctl("engines"), /n1\tllamacpp\t4711\tworks\tyes/);
      const [weights] = JSON.parse(await ctl("weights", "-o", "json"));
      equal(weights.weights.state, "ready");
      deepEqual(weights.models, ["m"]);
      deepEqual(await Deno.readFile(weights.weights.path), bytes);
      match(await ctl("weights", "remove", "n1", weights.weights.folder, "--yes"), /in_use/);
      match(await ctl("models", "inspect", "hf://org/name/q4.gguf"), /18 layers, 4 heads/);

      // The next version comes beside the one that serves, and a profile that names it moves to it.
      const text = await Deno.readTextFile(place.control);
      await Deno.writeTextFile(place.control, text.replace("[b1]", "[b1, b2]"));
      running[0]?.kill("SIGHUP");
      await until("both versions work", async () => /4712\tworks/.test(await ctl("engines")), seen);
      match(await ctl("engines"), /n1\tllamacpp\t4711\tworks\tyes/);
      const [before] = JSON.parse(await ctl("replicas", "-o", "json"));
      const catalog = await Deno.readTextFile(place.catalog);
      await Deno.writeTextFile(
        place.catalog,
        catalog.replace("engine: llamacpp", 'engine: llamacpp, engine_version: "4712"'),
      );
      await until("the new version serves, and it alone", async () => {
        const replicas = JSON.parse(await ctl("replicas", "-o", "json"));
        return replicas.length === 1 && replicas[0].state === "ready" &&
          replicas[0].replica_id !== before.replica_id;
      }, seen);
    } finally {
      for (const each of running.reverse()) {
        each.kill("SIGTERM");
        await each.status;
      }
      const stopped = await runCommand(
        join(ROOT, "bin/heddle-agent"),
        ["--config", place.agent, "--stop-engines", "yes"],
        place.agentEnv,
      );
      ok(stopped.code === 0, stopped.stderr);
      await Deno.remove(place.root, { recursive: true });
    }
  },
});

interface Laid {
  readonly root: string;
  readonly control: string;
  readonly catalog: string;
  readonly ctl: string;
  readonly agent: string;
  readonly agentEnv: Readonly<Record<string, string>>;
  readonly programs: readonly {
    readonly path: string;
    readonly args: string[];
    env: Record<string, string>;
  }[];
}

async function layOut(hub: string, releases: string): Promise<Laid> {
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
  const catalog = await write(
    "control/catalog.yaml",
    "models:\n  - name: m\n    source: hf://org/name/q4.gguf\n    profiles:\n" +
      "      - { name: cpu, engine: llamacpp, args: [-c, 1024] }\n",
  );
  const control = await write(
    "control/control.yaml",
    [
      "cluster: t",
      `agents: { listen: "127.0.0.1:${agents}" }`,
      `admin: { listen: "127.0.0.1:${admin}" }`,
      `metrics: { listen: "127.0.0.1:${metrics}" }`,
      `catalog_file: ${root}/control/catalog.yaml`,
      `state_directory: ${root}/control`,
      `engines: [{ name: llamacpp, versions: [b1], releases: "${releases}/releases" }]`,
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
    agentEnv,
    programs: [
      { path: "bin/heddle-control", args: ["--config", control], env: envOf("control", "") },
      { path: "bin/heddle-agent", args: ["--config", agent], env: agentEnv },
    ],
  };
}

function start({ path, args, env }: Laid["programs"][number]): Deno.ChildProcess {
  return new Deno.Command(join(ROOT, path), {
    args,
    env,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

async function until(
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
