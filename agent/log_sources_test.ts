import { deepEqual, equal, match } from "node:assert/strict";
import { type LogSourcesOptions, sendLog } from "./log_sources.ts";
import { openNode } from "./supervisor_fake.ts";
import { OwnLog } from "./edge/log/own_log.ts";

async function read(options: LogSourcesOptions, source: string) {
  const lines: string[] = [];
  let error = "";
  const request = { source, tailLines: 100, follow: false };
  await sendLog(options, request, (chunk) => {
    lines.push(...chunk.lines);
    error ||= chunk.error;
    return Promise.resolve(true);
  }, new AbortController().signal);
  return { lines, error };
}

/** Everything that this node and its agent have said. */
function sourcesOf(
  node: Awaited<ReturnType<typeof openNode>>,
  own: OwnLog,
  shards: ReturnType<LogSourcesOptions["shards"]> = [],
): LogSourcesOptions {
  return {
    own,
    store: node.store,
    launcher: node.launcher,
    find: (id) => node.supervisor.find(id),
    shards: () => shards,
  };
}

Deno.test("sendLog() marks lines of a shard that has several processes, the server's last", async () => {
  await using node = await openNode();
  using own = new OwnLog();
  const { shardId } = await node.start("", {
    args: ["echo 'ValueError: head'; sleep 60", "sleep 1; echo 'ERROR: served'; exit 1"],
  });
  await node.reached(shardId, "failed");
  const options = sourcesOf(node, own, [{ shardId, words: "sim of demo, failed" }]);
  const whole = ["[sidecar 0] ValueError: head", "[server] ERROR: served"];
  deepEqual(await read(options, shardId), { lines: whole, error: "" });
  deepEqual(await read(options, `${shardId}:errors`), { lines: whole, error: "" });
  deepEqual((await read(options, "sources")).lines, [
    "agent\tthe agent's own log since it was started",
    `${shardId}\tsim of demo, failed`,
    `${shardId}:errors\tthe first errors of each of its processes`,
  ]);
  const { error } = await read(options, "nobody");
  match(error, new RegExp(`it has: agent, ${shardId}, ${shardId}:errors`));
});

/** Follows a shard until its end, or until a line whose turn in `then` aborts. */
async function follow(
  options: LogSourcesOptions,
  source: string,
  then: (line: string, stop: () => void) => Promise<void> = () => Promise.resolve(),
) {
  const lines: string[] = [];
  let ends = 0;
  const stop = new AbortController();
  const request = { source, tailLines: 100, follow: true };
  const late = AbortSignal.any([stop.signal, AbortSignal.timeout(60_000)]);
  await sendLog(options, request, async (chunk) => {
    equal(chunk.error, "");
    if (chunk.end) ends++;
    lines.push(...chunk.lines);
    for (const line of chunk.lines) await then(line, () => stop.abort());
    return true;
  }, late);
  equal(ends, 1);
  return { lines, ended: !late.aborted };
}

Deno.test("sendLog() follows every process of a shard, those too that start later, until it is cancelled", async () => {
  await using node = await openNode();
  using own = new OwnLog();
  const { shardId } = await node.start("", {
    args: ["echo head; exec sleep 600", "echo served; exec sleep 600"],
  });
  await node.reached(shardId, "loading");
  await node.said(shardId, "head");
  await node.said(shardId, "served");
  const options = sourcesOf(node, own);
  const append = async (name: string, line: string) => {
    const process = (await node.store.processes(shardId)).find((each) => each.name === name);
    const file = node.launcher.logFile(process?.directory ?? "");
    await Deno.writeTextFile(file, `${line}\n`, { append: true });
  };
  // What is written next, once the line before it has come.
  const writes: Record<string, () => Promise<void>> = {
    "[server] served": () => append("sidecar 0", "worker joined"),
    "[sidecar 0] worker joined": () => append("server", "request"),
    "[server] request": async () => {
      await node.store.makeRun(shardId, { handle: "late", name: "late", position: 9 });
      await append("late", "began");
    },
    "[late] began": () => append("late", "worker lost"),
  };
  const { lines } = await follow(options, shardId, async (line, stop) => {
    if (line === "[late] worker lost") stop();
    await writes[line]?.();
  });
  deepEqual(lines, ["[sidecar 0] head", ...Object.keys(writes), "[late] worker lost"]);
});

Deno.test("sendLog() follows a shard from before its first process to its end, last words included", async () => {
  await using node = await openNode();
  using own = new OwnLog();
  const options = sourcesOf(node, own);
  const script = "echo up; sleep 1; echo 'ValueError: no'; printf 'and no newline'; exit 1";
  const { shardId } = await node.start(script);
  const whole = { lines: ["up", "ValueError: no", "and no newline"], ended: true };
  deepEqual(await follow(options, shardId), whole);
  // One that is over is shown as it is, and nobody waits.
  deepEqual(await follow(options, shardId), whole);
});
