import { deepEqual, equal, match, ok } from "node:assert/strict";
import { startEngineFake } from "./edge/engine/engine_fake.ts";
import { eventually } from "./eventually_fake.ts";
import { type FakeNode, openNode, stateFile } from "./supervisor_fake.ts";

const FOREVER = "echo up; while :; do sleep 60 & wait; done";
const WORKER = { rank: 1, shardCount: 2 };

async function nothingRuns(node: FakeNode): Promise<void> {
  deepEqual(await node.launcher.list(), []);
}

Deno.test("an engine that listens late is ready once it gives a token, and is stopped", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake({
    "/health": { status: 503, body: { error: { message: "Loading model" } } },
  });
  const { shardId } = await node.start(FOREVER, { portFirst: engine.address.port });
  await node.reached(shardId, "loading");
  await eventually("it is probed", () => engine.asked.some((line) => line.includes("/health")));
  engine.replies = { ...engine.replies, "/health": { status: 200, body: "" } };
  const ready = await node.reached(shardId, "ready");
  equal(ready.maxModelLen, 8192);
  equal(ready.address, `127.0.0.1:${engine.address.port}`);
  ok(engine.asked.includes("POST /v1/completions Bearer sk-heddle-replica-test"));
  await node.stop(shardId);
  await node.reached(shardId, "stopped");
  await nothingRuns(node);
});

Deno.test("an engine that dies while it loads has failed, with its code and its last words", async () => {
  await using node = await openNode();
  const { shardId } = await node.start("echo loading; echo 'out of memory' >&2; exit 3");
  const failed = await node.reached(shardId, "failed");
  equal(failed.reason, "process_exited");
  match(failed.message, /exited with code 3 while it loaded/);
  deepEqual(failed.exit, { code: 3, signal: "", outOfMemory: false });
  deepEqual(failed.logTail, ["loading", "out of memory"]);
});

Deno.test("an engine that exits by itself has failed, even with code 0", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake();
  const { shardId } = await node.start("until [ -e go ]; do sleep 0.05; done; exit 0", {
    portFirst: engine.address.port,
  });
  await node.reached(shardId, "ready");
  for (const run of await node.store.runs(shardId)) await Deno.writeTextFile(`${run}/go`, "");
  const failed = await node.reached(shardId, "failed");
  equal(failed.exit?.code, 0);
  match(failed.message, /exited with code 0 while it served/);
});

Deno.test("an engine that is killed is told with its signal, and nothing of it is left", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake();
  const { shardId } = await node.start(FOREVER, { portFirst: engine.address.port });
  const { pid } = await node.reached(shardId, "ready");
  await kill("KILL", pid ?? 0);
  const failed = await node.reached(shardId, "failed");
  deepEqual(failed.exit, { code: 137, signal: "SIGKILL", outOfMemory: false });
  match(failed.message, new RegExp(`pid ${pid}.* was ended by SIGKILL while it served`));
  await nothingRuns(node);
});

Deno.test("an engine that ignores SIGTERM is killed after its stop_timeout, workers too", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(
    "trap '' TERM; (trap '' TERM; sleep 61) & setsid sleep 62 & echo up; sleep 63; sleep 64",
    { ...WORKER, stopTimeoutMs: 300 },
  );
  await node.said(shardId, "up");
  const begunAt = Date.now();
  await node.stop(shardId);
  await node.reached(shardId, "stopped");
  ok(Date.now() - begunAt >= 300, "it had its time");
  await nothingRuns(node);
});

Deno.test("children that outlive their engine are ended with it", async () => {
  await using node = await openNode();
  const { shardId } = await node.start("setsid sleep 60 & sleep 61 & echo up; sleep 0.1; exit 1");
  const failed = await node.reached(shardId, "failed");
  equal(failed.exit?.code, 1);
  await nothingRuns(node);
});

Deno.test("if a sidecar dies, the shard has failed whole", async () => {
  await using node = await openNode();
  const { shardId } = await node.start("", { args: ["sleep 0.2; exit 9", FOREVER] });
  const failed = await node.reached(shardId, "failed");
  match(failed.message, /Process sidecar 0 .* exited with code 9/);
  await nothingRuns(node);
});

Deno.test("a failed engine's log is read for why, over all its processes and from its start", async () => {
  await using node = await openNode();
  const cause = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.";
  const { shardId } = await node.start("", {
    args: [`echo '${cause}'; ${FOREVER}`, "sleep 1; yes noise | head -n 5000; exit 1"],
  });
  const failed = await node.reached(shardId, "failed");
  equal(failed.reason, "gpu_out_of_memory");
  equal(failed.permanent, false);
  match(
    failed.message,
    /server .* exited with code 1 while it loaded\. GPU memory ran out\. To do: /,
  );
  ok(failed.message.endsWith(`The sidecar 0's log says: ${cause}`));
});

Deno.test("what cannot get better by itself is told as permanent", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(
    "echo 'RuntimeError: The NVIDIA driver on your system is too old (found version 1).'; exit 1",
  );
  const failed = await node.reached(shardId, "failed");
  deepEqual([failed.reason, failed.permanent], ["driver_too_old", true]);
});

Deno.test("an engine that floods its log is told with its last lines only, secrets hidden", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(
    `yes "$(printf '%0999d' 7)" | head -n 20000; echo "key $VLLM_API_KEY"; exit 1`,
  );
  const failed = await node.reached(shardId, "failed");
  equal(failed.logTail.length, 50);
  equal(failed.logTail.at(-1), "key [hidden]");
});

Deno.test("an engine that lies about its health never becomes ready, and its lie is told", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake({
    "/v1/completions": { status: 500, body: { error: { message: "EngineDeadError" } } },
  });
  const { shardId } = await node.start(FOREVER, {
    portFirst: engine.address.port,
    startupTimeoutMs: 1_500,
    stopTimeoutMs: 2_000,
  });
  const failed = await node.reached(shardId, "failed");
  equal(failed.reason, "startup_timeout");
  match(failed.message, /last seen: .*500.*EngineDeadError/);
  ok(!node.told.some(({ status }) => status.state === "ready"));
});

Deno.test("an agent that ends while it starts an engine leaves it to the next one", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(FOREVER, WORKER);
  await node.restart();
  await node.reached(shardId, "loading");
  equal((await node.launcher.list()).length, 1);
  await node.said(shardId, "up");
});

Deno.test("a restarted agent has the same engine in the same state, and restarts nothing", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake();
  const { shardId } = await node.start(FOREVER, { portFirst: engine.address.port });
  const before = await node.reached(shardId, "ready");
  const asked = engine.asked.length;
  await node.restart();
  const after = await node.reached(shardId, "ready");
  equal(after.pid, before.pid);
  equal(node.supervisor.find(shardId)?.apiKey, "sk-heddle-replica-test");
  await eventually("it is probed again", () => engine.asked.length > asked);
  await node.stop(shardId);
  await node.reached(shardId, "stopped");
  await nothingRuns(node);
});

Deno.test("a shard that loads keeps its first deadline over a restart of the agent", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(FOREVER, { startupTimeoutMs: 1_500, stopTimeoutMs: 1_000 });
  await node.reached(shardId, "loading");
  await node.restart();
  const begunAt = Date.now();
  const failed = await node.reached(shardId, "failed");
  equal(failed.reason, "startup_timeout");
  ok(Date.now() - begunAt < 2_500, "the deadline did not begin again");
  await nothingRuns(node);
});

Deno.test("what ended while no agent was there is told as failed, with its record", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake();
  const { shardId } = await node.start("trap 'exit 5' TERM; sleep 60 & wait", {
    portFirst: engine.address.port,
  });
  const { pid } = await node.reached(shardId, "ready");
  await node.restart(async () => {
    await kill("TERM", pid ?? 0);
    await eventually("it is gone", async () => (await node.launcher.list()).length === 0);
  });
  const failed = await node.reached(shardId, "failed");
  deepEqual(failed.exit, { code: 5, signal: "", outOfMemory: false });
});

Deno.test("an engine that was told to stop by one agent is seen off by the next", async () => {
  await using node = await openNode();
  const { shardId } = await node.start("trap '' TERM; echo up; sleep 60; sleep 60", {
    ...WORKER,
    stopTimeoutMs: 1_000,
  });
  await node.said(shardId, "up");
  await node.stop(shardId);
  await node.restart();
  const stopped = await node.reached(shardId, "stopped");
  equal(stopped.reason, "drained");
  await nothingRuns(node);
});

Deno.test("a file of another version keeps its engine, and is told and not touched", async () => {
  await using node = await openNode();
  const { shardId, gpus } = await node.start(FOREVER, {
    ...WORKER,
    gpus: [{ index: 0, uuid: "GPU-a" }],
  });
  await node.said(shardId, "up");
  const file = stateFile(node, shardId);
  let text = "";
  await node.restart(async () => {
    const document = JSON.parse(await Deno.readTextFile(file));
    text = JSON.stringify({ ...document, version: 99, state: { kind: "dreaming" } });
    await Deno.writeTextFile(file, text);
  });
  equal((await node.launcher.list()).length, 1);
  equal(await Deno.readTextFile(file), text);
  const [kept] = node.supervisor.unreadable;
  equal(kept?.shardId, shardId);
  ok(node.supervisor.heldGpus().has(gpus[0]?.uuid ?? ""), "its GPU is not free");
});

Deno.test("an engine whose state is corrupt is found by its nonce and stopped", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(FOREVER, WORKER);
  await node.reached(shardId, "loading");
  await node.restart(() => Deno.writeTextFile(stateFile(node, shardId), '{"version":1,"sta'));
  await nothingRuns(node);
  equal(node.supervisor.find(shardId), undefined);
  const [corrupt] = node.supervisor.corrupt;
  equal(corrupt?.shardId, shardId);
  match(corrupt?.kept ?? "", /\/corrupt-\d{8}T\d{9}Z-s-r1%2F0$/);
  ok((await Deno.readTextFile(`${corrupt?.kept}/state.json`)).startsWith('{"version":1,"sta'));
  // It is told once, and the name is free again.
  await node.restart();
  deepEqual(node.supervisor.corrupt, []);
  await node.start(FOREVER, WORKER);
  await node.reached(shardId, "loading");
});

Deno.test("a pid that now is another process's is never touched", async () => {
  await using node = await openNode();
  const { shardId } = await node.start(FOREVER, WORKER);
  await node.reached(shardId, "loading");
  const stranger = new Deno.Command("/bin/sleep", { args: ["60"] }).spawn();
  await node.restart(async () => {
    const [engine] = await node.launcher.list();
    await node.launcher.signal({ name: "server", ...engine ?? never() }, "SIGKILL");
    await eventually("it is gone", async () => (await node.launcher.list()).length === 0);
    const file = stateFile(node, shardId);
    const text = await Deno.readTextFile(file);
    await Deno.writeTextFile(file, text.replaceAll(/"pid": \d+/g, `"pid": ${stranger.pid}`));
    // As if the machine had been restarted: the record of its end is gone too.
    for (const run of await node.store.runs(shardId)) await Deno.remove(`${run}/exit`);
  });
  const failed = await node.reached(shardId, "failed");
  equal(failed.reason, "process_exited");
  equal(failed.exit, undefined);
  stranger.kill("SIGTERM");
  equal((await stranger.status).signal, "SIGTERM", "it lived until then");
});

Deno.test("an engine that could not be found again is not started", async () => {
  await using node = await openNode();
  await Deno.remove(`${node.root}/shards`, { recursive: true });
  await Deno.writeTextFile(`${node.root}/shards`, "a file where a folder should be");
  const { shardId } = await node.start(FOREVER, WORKER);
  const failed = await node.reached(shardId, "failed");
  equal(failed.reason, "system_error");
  match(failed.message, /its state cannot be written down/);
  await nothingRuns(node);
});

Deno.test("a command sent twice starts one engine", async () => {
  await using node = await openNode();
  const spec = await node.start(FOREVER, WORKER);
  await node.said(spec.shardId, "up");
  const again = await node.supervisor.start({ spec, revision: { term: 1, sequence: 1 } });
  equal(again.kind, "done");
  equal((await node.launcher.list()).length, 1);
});

Deno.test("stopAll() ends every engine of the node and waits for it", async () => {
  await using node = await openNode();
  for (const [index, shardId] of ["a", "b"].entries()) {
    await node.start(FOREVER, { ...WORKER, shardId, portFirst: 20_000 + 256 * index });
    await node.said(shardId, "up");
  }
  await node.supervisor.stopAll("node_stopped", AbortSignal.timeout(15_000));
  await nothingRuns(node);
  const ends = node.supervisor.statuses().map(({ status }) => [status.state, status.message]);
  deepEqual(ends, [["stopped", ""], ["stopped", ""]]);
});

async function kill(signal: string, pid: number): Promise<void> {
  await new Deno.Command("/bin/sh", { args: ["-c", `kill -${signal} ${pid}`] }).output();
}

function never(): never {
  throw new Error("nothing runs");
}

Deno.test("a shard that becomes ready over a link that is down is never told to be ready", async () => {
  await using node = await openNode();
  await using engine = await startEngineFake();
  const port = (down: string | undefined) => ({
    gpus: new Map(),
    pairs: [],
    ports: new Map([["mlx5_0:1", { down, wentDown: false }]]),
  });
  node.supervisor.judgeLinks(port("mlx5_0 port 1 is in state 1: DOWN"));
  const { shardId } = await node.start(FOREVER, {
    portFirst: engine.address.port,
    hcas: [{ name: "mlx5_0", port: 1 }],
  });
  const degraded = await node.reached(shardId, "degraded");
  equal(degraded.reason, "hca_link_down");
  ok(!node.told.some(({ status }) => status.state === "ready"));
  // The restarted agent has looked at nothing yet: what was known stays known.
  await node.restart();
  equal((await node.reached(shardId, "degraded")).reason, "adopt_not_ready");
  await eventually("it has answered", () => node.told.at(-1)?.status.reason === "hca_link_down");
  node.supervisor.judgeLinks({ gpus: new Map(), pairs: [], ports: undefined });
  equal(node.supervisor.statuses()[0]?.status.state, "degraded", "no reading heals nothing");
  node.supervisor.judgeLinks(port(undefined));
  await node.reached(shardId, "ready");
  await node.stop(shardId);
  await node.reached(shardId, "stopped");
});
