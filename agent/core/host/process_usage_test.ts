import { deepEqual, equal } from "node:assert/strict";
import { cpuPercent, readShimUsage, readUnitUsage, total } from "./process_usage.ts";

Deno.test("readShimUsage() sums the processes of a run, and counts shared memory once", () => {
  const read = readShimUsage([
    "ticks 100",
    "r1-a 100 250 1000 4000",
    "r1-a 101 50 24 4000",
    "r2-b 102 0 0 0",
    "what ever else",
    "",
  ]);
  deepEqual([...read], [
    ["r1-a", { cpuSeconds: 3, memoryBytes: 5024 * 1024 }],
    ["r2-b", { cpuSeconds: 0, memoryBytes: 0 }],
  ]);
  deepEqual([...readShimUsage(["r1 1 250 1 0"])], [["r1", { memoryBytes: 1024 }]]);
  equal(readShimUsage([]).size, 0);
});

Deno.test("readUnitUsage() takes what systemd does not count for unknown", () => {
  deepEqual(readUnitUsage({ CPUUsageNSec: "1500000000", MemoryCurrent: "4096" }), {
    cpuSeconds: 1.5,
    memoryBytes: 4096,
  });
  deepEqual(
    readUnitUsage({ CPUUsageNSec: "[not set]", MemoryCurrent: "18446744073709551615" }),
    {},
  );
  deepEqual(readUnitUsage({}), {});
});

Deno.test("cpuPercent() needs two readings of a sum that grew", () => {
  const at = (cpuSeconds: number, ms: number) => ({ usage: { cpuSeconds }, at: ms });
  equal(cpuPercent(at(10, 0), at(35, 10_000)), 250);
  equal(cpuPercent(at(10, 0), at(10, 10_000)), 0);
  equal(cpuPercent(undefined, at(10, 0)), undefined);
  equal(cpuPercent(at(10, 0), at(4, 10_000)), undefined);
  equal(cpuPercent(at(10, 5), at(12, 5)), undefined);
  equal(cpuPercent({ usage: {}, at: 0 }, at(1, 10)), undefined);
});

Deno.test("total() sums what is known", () => {
  equal(total([1, undefined, 2]), 3);
  equal(total([undefined]), undefined);
  equal(total([]), undefined);
});
