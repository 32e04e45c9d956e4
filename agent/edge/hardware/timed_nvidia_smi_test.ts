import { deepEqual } from "node:assert/strict";
import type { CallResult } from "./nvidia_smi.ts";
import { type TimedCall, TimedNvidiaSmi } from "./timed_nvidia_smi.ts";

Deno.test("TimedNvidiaSmi tells of each call that was made, by what it asked", async () => {
  const results: CallResult[] = [
    { kind: "finished", code: 0, stdout: "", stderr: "" },
    { kind: "hung", call: "topo -m", deadlineMs: 1 },
    { kind: "blocked", call: "topo -m" },
    { kind: "not_started", why: "missing", message: "" },
  ];
  const told: TimedCall[] = [];
  const timed = new TimedNvidiaSmi({
    path: "/usr/bin/nvidia-smi",
    run: () => Promise.resolve(results.shift() ?? { kind: "blocked", call: "" }),
    idle: () => Promise.resolve(),
  }, (call) => told.push(call));
  const { signal } = new AbortController();
  for (
    const args of [["--query-gpu=uuid,name", "--format=csv"], ["topo", "-m"], ["nvlink"], ["-L"]]
  ) {
    await timed.run(args, 1, signal);
  }
  deepEqual(told.map(({ call, outcome }) => `${call} ${outcome}`), [
    "query-gpu finished",
    "topo hung",
    "L not_started",
  ]);
});
