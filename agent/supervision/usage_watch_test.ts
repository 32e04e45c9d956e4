import { deepEqual } from "node:assert/strict";
import type { ProcessUsage } from "../core/host/process_usage.ts";
import { aShard } from "../core/shard/shard_fake.ts";
import { UsageWatch } from "./usage_watch.ts";

const { signal } = new AbortController();

function watched() {
  let now = 0;
  let usage: ProcessUsage | Error = {};
  let asked = 0;
  const shard = aShard("ready");
  const watch = new UsageWatch({
    launcher: {
      usage(processes) {
        asked += 1;
        if (usage instanceof Error) return Promise.reject(usage);
        const told = usage;
        return Promise.resolve(new Map(processes.map(({ handle }) => [handle, told])));
      },
    },
    shards: () => [shard],
    now: () => now,
  });
  return {
    shard,
    watch,
    get asked() {
      return asked;
    },
    async look(at: number, found: ProcessUsage | Error) {
      now = at;
      usage = found;
      await watch.refresh(signal);
      return watch.of(shard);
    },
  };
}

Deno.test("UsageWatch tells memory at once and CPU from the second look on, not at each heartbeat", async () => {
  const node = watched();
  deepEqual(node.watch.of(node.shard), {});
  deepEqual(await node.look(1_000, { cpuSeconds: 10, memoryBytes: 5 }), { memoryBytes: 5 });
  deepEqual(await node.look(6_000, { cpuSeconds: 99, memoryBytes: 9 }), { memoryBytes: 5 });
  deepEqual([node.asked], [1]);
  deepEqual(await node.look(21_000, { cpuSeconds: 40, memoryBytes: 7 }), {
    cpuPercent: 150,
    memoryBytes: 7,
  });
});

Deno.test("UsageWatch knows nothing when the launcher cannot tell, and starts anew", async () => {
  const node = watched();
  await node.look(0, { cpuSeconds: 1, memoryBytes: 5 });
  deepEqual(await node.look(20_000, new Error("no shell")), {});
  deepEqual(await node.look(40_000, { cpuSeconds: 4, memoryBytes: 5 }), { memoryBytes: 5 });
});

Deno.test("UsageWatch says nothing of a shard without processes", async () => {
  const node = watched();
  await node.look(0, { memoryBytes: 5 });
  deepEqual(node.watch.of(aShard("preparing")), {});
});
