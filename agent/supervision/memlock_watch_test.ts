import { equal, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { aSpec, PROCESS } from "../core/shard/shard_fake.ts";
import type { Shard } from "../core/shard/shard.ts";
import { readMemlock } from "../edge/launcher/limits.ts";
import { eventually } from "../eventually_fake.ts";
import { MemlockWatch } from "./memlock_watch.ts";

const SHIM = fileURLToPath(new URL("../../bin/heddle-shim", import.meta.url));

Deno.test("MemlockWatch knows what an engine could lock also when it is gone", async () => {
  const watch = new MemlockWatch(SHIM, "process");
  const state: Shard["state"] = { kind: "starting", planned: [], deadline: 0 };
  const shard: Shard = {
    spec: aSpec(),
    revision: { term: 1, sequence: 1 },
    apiKey: "",
    since: 0,
    state,
  };
  const child = new Deno.Command("/bin/sleep", { args: ["60"] }).spawn();
  const expected = await readMemlock(SHIM, child.pid);
  equal(watch.of(shard.spec.shardId), undefined);
  // The pid that counts is the engine's own, not its shim's.
  watch.look(shard, { ...PROCESS, pid: 4_194_304, mainPid: child.pid });
  await eventually(
    "it was looked at",
    () => Promise.resolve(watch.of(shard.spec.shardId) !== undefined),
  );
  child.kill("SIGKILL");
  await child.status;
  ok(expected !== undefined);
  equal(watch.of(shard.spec.shardId), expected);
});
