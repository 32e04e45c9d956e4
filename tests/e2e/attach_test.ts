/** Engines that something else started: attached by a script, used, degraded, lost, and kept. */
import { equal, match, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AttachFleet } from "./attach_fleet.ts";
import { eventually, isAlive, reserve, ROOT, runCommand } from "./heddle.ts";

const CATALOG = `models:
  - name: demo
    source: any/model
    scaling: { min: 0 }
    attach: [rented]
    profiles: []
`;

/** What is fetched instead of an executable of a hundred megabytes: it starts the same program. */
const AGENT = `#!/bin/sh\nexec '${join(ROOT, "bin/heddle-agent")}' "$@"\n`;

/** A quote reaches the engine as it is. */
const KEY = "the-engine's-own-key";
const UP = "\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n";
const LOST = "\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n";

Deno.test("an engine that the wrapper starts is attached, used, degraded, kept and lost", async () => {
  await using place = await reserve();
  await using published = publish(AGENT);
  await using fleet = await AttachFleet.start(place, CATALOG);
  const links = join(place.state, "links");
  await Deno.writeTextFile(links, UP);
  await using box = await startBox(place.state, fleet, { url: published.url, links });
  try {
    await serves(fleet);
    await outlivesControl(fleet);
    await Deno.writeTextFile(links, LOST);
    await isDegraded(fleet);
    Deno.kill(await box.agent(), "SIGKILL");
    await leaves(fleet);
    ok(await isAlive(box.engine));
  } catch (error) {
    const logs = `${await fleet.log("control")}\n${await fleet.log("router")}`;
    throw new Error(`${error}\n${logs}`, { cause: error });
  }
});

async function serves(fleet: AttachFleet): Promise<void> {
  const { attached, address } = await eventually("it serves", async () => {
    const replica = await fleet.replica("rented/box-1");
    return replica?.attached?.state === "serving" && replica.reason === "" ? replica : undefined;
  });
  equal(attached?.provider, "vast");
  equal(attached?.host_id, "m-42");
  equal(attached?.cards, 1);
  equal(address, `127.0.0.1:${fleet.enginePort}`);
  const { stdout } = await fleet.ctl("nodes");
  match(stdout, /rented\/box-1\/0\s+attached: serving\s.*on vast, host m-42, 2\/2 NVLinks/);
  equal(await ask(fleet), 200);
}

/** A control that starts again has heard of no engine, and takes none away. */
async function outlivesControl(fleet: AttachFleet): Promise<void> {
  await fleet.killControl();
  fleet.startControl();
  await eventually("the engine is back at the new control", async () => {
    equal(await ask(fleet), 200);
    const { code, stdout } = await fleet.ctl("replicas", "--json");
    return code === 0 && /"state": ?"ready"/.test(stdout) || undefined;
  });
  equal(await ask(fleet), 200);
}

async function isDegraded(fleet: AttachFleet): Promise<void> {
  const { reason } = await eventually("a lost link makes it degraded", async () => {
    const replica = await fleet.replica("rented/box-1");
    return replica?.attached?.state === "degraded" ? replica : undefined;
  });
  match(reason, /1 of 2 NVLinks are up/);
  equal(await ask(fleet), 200);
}

async function leaves(fleet: AttachFleet): Promise<void> {
  await eventually(
    "its lease ends",
    async () => (await fleet.replica("rented/box-1"))?.attached?.state === "lost" || undefined,
  );
  await eventually(
    "the routers have it no more",
    async () => await ask(fleet) === 503 || undefined,
  );
}

interface Box extends AsyncDisposable {
  /** Pid of the engine, which was the wrapper's. */
  readonly engine: number;
  /** Pid of the agent beside it. */
  agent(): Promise<number>;
}

/** A machine with an engine, started by the wrapper, and with a card whose links are in a file. */
async function startBox(
  folder: string,
  fleet: AttachFleet,
  { url, links }: { readonly url: string; readonly links: string },
): Promise<Box> {
  const wrapper = join(folder, "wrapper.sh");
  const agent = join(ROOT, "bin/heddle-agent");
  const printed = await runCommand(agent, ["script", "wrapper"], { HEDDLE_DENO: Deno.execPath() });
  await Deno.writeTextFile(wrapper, printed.stdout);
  const smi = join(folder, "nvidia-smi");
  await Deno.writeTextFile(smi, nvidiaSmi(links), { mode: 0o755 });
  const port = `${fleet.enginePort}`;
  const engine = new Deno.Command("sh", {
    args: [
      wrapper,
      join(ROOT, "bin/heddle-sim"),
      ...["serve", "any/model", "--served-model-name", "demo", "--port", port],
      ...["--host", "127.0.0.1", "--api-key", KEY, "--sim-load-ms", "500"],
    ],
    env: {
      ...await fleet.boxEnvironment("rented"),
      HEDDLE_ENGINE_ID: "box-1",
      HEDDLE_ENGINE_MODEL: "demo",
      HEDDLE_PROVIDER: "vast",
      HEDDLE_HOST_ID: "m-42",
      HEDDLE_ENGINE_HEALTH_URL: `http://127.0.0.1:${port}/health`,
      HEDDLE_ENGINE_API_KEY: KEY,
      HEDDLE_AGENT_BINARY_URL: url,
      HEDDLE_AGENT_BINARY_SHA256: createHash("sha256").update(AGENT).digest("hex"),
      HEDDLE_NVIDIA_SMI: smi,
      TMPDIR: folder,
    },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  return {
    engine: engine.pid,
    agent: () => agentIn(folder),
    async [Symbol.asyncDispose]() {
      engine.kill("SIGTERM");
      await engine.status;
    },
  };
}

async function ask(fleet: AttachFleet): Promise<number> {
  const response = await fetch(`${fleet.openaiUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "demo",
      max_tokens: 1,
      messages: [{ role: "user", content: "hello" }],
    }),
  });
  await response.body?.cancel();
  return response.status;
}

function publish(text: string) {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(text),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/heddle-agent`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** The agent whose environment has this folder as its TMPDIR. */
async function agentIn(folder: string): Promise<number> {
  const find = `for each in /proc/[0-9]*; do
    tr '\\0' ' ' <"$each/cmdline" 2>/dev/null | grep -q agent/attach/main.ts || continue
    tr '\\0' '\\n' <"$each/environ" 2>/dev/null | grep -qx "TMPDIR=$1" && echo "\${each#/proc/}"
  done; true`;
  const { stdout } = await runCommand("/bin/sh", ["-c", find, "find", folder]);
  const pid = Number(stdout.trim().split("\n")[0]);
  if (!(pid > 1)) throw new Error(`No agent runs with TMPDIR=${folder}`);
  return pid;
}

function nvidiaSmi(links: string): string {
  const uuid = "GPU-11111111-2222-3333-4444-555555555555";
  return `#!/bin/sh
case "$*" in
  "nvlink -s") echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: ${uuid})"; cat '${links}' ;;
  --query-gpu=*) echo "${uuid}, 81559, NVIDIA H100 80GB HBM3" ;;
esac
`;
}
