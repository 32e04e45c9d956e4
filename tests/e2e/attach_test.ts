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

Deno.test("an engine that the wrapper starts is attached, used, degraded, kept and lost", async () => {
  await using place = await reserve();
  await using published = publish(AGENT);
  await using fleet = await AttachFleet.start(place, CATALOG);
  const wrapper = join(place.state, "wrapper.sh");
  const { stdout } = await runCommand(join(ROOT, "bin/heddle-agent"), ["script", "wrapper"], {
    HEDDLE_DENO: Deno.execPath(),
  });
  await Deno.writeTextFile(wrapper, stdout);
  const smi = join(place.state, "nvidia-smi");
  await Deno.writeTextFile(smi, nvidiaSmi(join(place.state, "links")), { mode: 0o755 });
  await Deno.writeTextFile(join(place.state, "links"), "\t Link 0: 26.562 GB/s\n".repeat(2));
  const port = `${fleet.enginePort}`;
  const engine = new Deno.Command("sh", {
    args: [
      wrapper,
      join(ROOT, "bin/heddle-sim"),
      ...[
        "serve",
        "any/model",
        "--served-model-name",
        "demo",
        "--port",
        port,
        "--host",
        "127.0.0.1",
      ],
      ...["--api-key", "own-key-1", "--sim-load-ms", "500"],
    ],
    env: {
      ...await fleet.boxEnvironment("rented"),
      HEDDLE_ENGINE_ID: "box-1",
      HEDDLE_ENGINE_MODEL: "demo",
      HEDDLE_PROVIDER: "vast",
      HEDDLE_HOST_ID: "m-42",
      HEDDLE_ENGINE_HEALTH_URL: `http://127.0.0.1:${port}/health`,
      HEDDLE_ENGINE_API_KEY: "own-key-1",
      HEDDLE_AGENT_BINARY_URL: published.url,
      HEDDLE_AGENT_BINARY_SHA256: createHash("sha256").update(AGENT).digest("hex"),
      HEDDLE_NVIDIA_SMI: smi,
      TMPDIR: place.state,
    },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  try {
    const serving = await eventually("it serves", async () => {
      const replica = await fleet.replica("rented/box-1");
      return replica?.attached?.state === "serving" && replica.reason === "" ? replica : undefined;
    });
    equal(serving.attached?.provider, "vast");
    equal(serving.attached?.host_id, "m-42");
    equal(serving.attached?.cards, 1);
    equal(serving.address, `127.0.0.1:${port}`);
    const table = await fleet.ctl("nodes");
    match(table.stdout, /rented\/box-1\/0\s+attached: serving\s.*on vast, host m-42, 2\/2 NVLinks/);
    equal(await ask(fleet), 200);

    // A control that starts again has heard of no engine, and takes none away.
    await fleet.killControl();
    fleet.startControl();
    let asked = 0;
    await eventually("the engine is back at the new control", async () => {
      equal(await ask(fleet), 200);
      asked++;
      const { code, stdout } = await fleet.ctl("replicas", "--json");
      return code === 0 && stdout.includes('"state": "ready"') || undefined;
    });
    ok(asked > 0);
    equal(await ask(fleet), 200);

    await Deno.writeTextFile(
      join(place.state, "links"),
      "\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n",
    );
    const degraded = await eventually("a lost link makes it degraded", async () => {
      const replica = await fleet.replica("rented/box-1");
      return replica?.attached?.state === "degraded" ? replica : undefined;
    });
    match(degraded.reason, /1 of 2 NVLinks are up/);
    equal(await ask(fleet), 200);

    const agent = await agentOf(engine.pid);
    Deno.kill(agent, "SIGKILL");
    await eventually(
      "its lease ends",
      async () => (await fleet.replica("rented/box-1"))?.attached?.state === "lost" || undefined,
    );
    await eventually(
      "the routers have it no more",
      async () => await ask(fleet) === 503 || undefined,
    );
    ok(await isAlive(engine.pid));
  } catch (error) {
    throw new Error(`${error}\n${await fleet.log("control")}\n${await fleet.log("router")}`, {
      cause: error,
    });
  } finally {
    engine.kill("SIGTERM");
    await engine.status;
  }
});

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

/** The agent that runs beside an engine, by whose environment names it. */
async function agentOf(engine: number): Promise<number> {
  const { stdout } = await runCommand("/bin/sh", [
    "-c",
    'for each in /proc/[0-9]*; do tr "\\0" " " <"$each/cmdline" 2>/dev/null | grep -q "agent/attach/main.ts" ' +
    '&& tr "\\0" "\\n" <"$each/environ" 2>/dev/null | grep -q "^TMPDIR=$1$" && echo "\${each#/proc/}"; done',
    "find",
    (await runCommand("/bin/sh", [
      "-c",
      `tr "\\0" "\\n" </proc/${engine}/environ | sed -n 's/^TMPDIR=//p'`,
    ]))
      .stdout.trim(),
  ]);
  return Number(stdout.trim().split("\n")[0]);
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
