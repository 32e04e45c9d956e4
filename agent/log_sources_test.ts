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

Deno.test("sendLog() marks lines of a shard that has several processes, the server's last", async () => {
  await using node = await openNode();
  using own = new OwnLog();
  const { shardId } = await node.start("", {
    args: ["echo 'ValueError: head'; sleep 60", "sleep 1; echo 'ERROR: served'; exit 1"],
  });
  await node.reached(shardId, "failed");
  const options: LogSourcesOptions = {
    own,
    store: node.store,
    launcher: node.launcher,
    find: (id) => node.supervisor.find(id),
    shards: () => [{ shardId, words: "sim of demo, failed" }],
  };
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

Deno.test("sendLog() follows every process of a shard, until it is cancelled", async () => {
  await using node = await openNode();
  using own = new OwnLog();
  const { shardId } = await node.start("", {
    args: ["echo head; sleep 60", "sleep 1; echo served; exit 1"],
  });
  await node.reached(shardId, "failed");
  const options: LogSourcesOptions = {
    own,
    store: node.store,
    launcher: node.launcher,
    find: (id) => node.supervisor.find(id),
    shards: () => [],
  };
  const append = async (name: string, line: string) => {
    const process = (await node.store.processes(shardId)).find((each) => each.name === name);
    const file = node.launcher.logFile(process?.directory ?? "");
    await Deno.writeTextFile(file, `${line}\n`, { append: true });
  };
  const stop = new AbortController();
  // What is written next, once the line before it has come.
  const writes: Record<string, () => Promise<void>> = {
    "[server] served": () => append("sidecar 0", "worker joined"),
    "[sidecar 0] worker joined": () => append("server", "request"),
    "[server] request": () => append("sidecar 0", "worker lost"),
    "[sidecar 0] worker lost": () => Promise.resolve(stop.abort()),
  };
  const lines: string[] = [];
  let ends = 0;
  const request = { source: shardId, tailLines: 100, follow: true };
  const late = AbortSignal.any([stop.signal, AbortSignal.timeout(20_000)]);
  await sendLog(options, request, async (chunk) => {
    equal(chunk.error, "");
    if (chunk.end) ends++;
    lines.push(...chunk.lines);
    for (const line of chunk.lines) await writes[line]?.();
    return true;
  }, late);
  deepEqual(lines, ["[sidecar 0] head", ...Object.keys(writes)]);
  equal(ends, 1);
});
