/** Every other reader of what a program or the kernel says: none may throw, whatever it is given. */
import { ok } from "node:assert/strict";
import fc from "fast-check";
import { engineLoad } from "./engine_load.ts";
import { engineVersion } from "./engine_version.ts";
import { decodeExitFile } from "./exit_file.ts";
import { classifyGpu } from "./gpu/gpu_class.ts";
import { counterRises, parseCounter, saturated } from "./health/port_counters.ts";
import { cpuProblem } from "./host/cpu_flags.ts";
import { functionOf, pciDistance } from "./host/pci_distance.ts";
import { readShimUsage, readUnitUsage } from "./host/process_usage.ts";
import { FUZZ_RUNS, mutated } from "./mutated_fake.ts";
import { readLaunchArgs } from "@heddle/common/model/launch_args";
import { roceGidIndex } from "./rdma/gid.ts";
import { numaNode, rateGbps } from "./rdma/hca.ts";
import { redactLine } from "./redact_line.ts";
import { decodeDocument, encodeDocument } from "./shard/document.ts";
import { aShard, aSpec } from "./shard/shard_fake.ts";
import { decodeExitRecord, startFailure } from "./systemd/exit_record.ts";
import { environmentFileOf, parseShow, pidIn } from "./systemd/show.ts";

const NAMES = Deno.readTextFileSync(
  new URL("../../tests/fixtures/hardware/classes.tsv", import.meta.url),
).split("\n").map((line) => line.split("\t")[0] ?? "").filter((name) => name !== "");

const METRICS = `# HELP vllm:num_requests_running Requests.
vllm:num_requests_running{engine="0",model_name="a"} 2.0
vllm:num_requests_waiting{engine="0"} 1e1
vllm:kv_cache_usage_perc 0.5
vllm:generation_tokens_total 12
`;
const LOAD_NAMES = {
  running: ["vllm:num_requests_running"],
  waiting: ["vllm:num_requests_waiting"],
  kvUsage: ["vllm:kv_cache_usage_perc"],
  progress: ["vllm:generation_tokens_total"],
};

const TEXTS = [
  METRICS,
  "WARNING: x\n0.28.1rc1+cu129\nversion: 11069 (00dc8057)\nheddle-sim 0.1.0\n",
  '{"version":1,"code":137,"signal":"SIGKILL"}',
  "heddle-exit-1\nexit-code\nexited\n3\n",
  "Id=heddle-engine-a-1.service\nLoadState=loaded\nMainPID=12\nCPUUsageNSec=5\n" +
  "MemoryCurrent=[not set]\nEnvironmentFiles=/x/env (ignore_errors=no)\n\nId=b\n",
  "ticks 100\nr1-a 100 250 1000 4000\nr2 1 2 3 4\n",
  "cpu:type:x86,ven0000fam0006mod008F:feature:,0000,0001,0125\n",
  "400 Gb/sec (4X NDR)\n255\nN/A (no PMA)\n0000:0000:0000:0000:0000:ffff:c000:0248\n",
  "../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/infiniband/mlx5_0",
  "--max-model-len 32K --gpu-memory-utilization=0.9 -c 4096 --kv-cache-dtype fp8",
  "ValueError api_key='sk-heddle-replica-x' Authorization: Bearer abc",
  encodeDocument(aShard("degraded"), (spec) => ({ shardId: spec.shardId })),
  ...NAMES,
];

const PIECES = [
  ...["\n", "\n\n", " ", "\t", "=", ":", ",", "{", "}", "[", "]", '"', "\\", "\u0000", "é", ""],
  ...["-1", "0", "1e999", "NaN", "999999999999999999999", "null", "[not set]", "SIG", "\u001b[31m"],
];

const READERS: Readonly<Record<string, (text: string) => void>> = {
  "engineLoad()": (text) => {
    const { running = 0, waiting = 0, kvUsage = 0, progress = 0 } = engineLoad(text, LOAD_NAMES);
    ok(running >= 0 && waiting >= 0 && kvUsage >= 0 && kvUsage <= 1 && !Number.isNaN(progress));
  },
  "engineVersion()": (text) => {
    const version = engineVersion(text);
    // Colours are no part of it, and may stand within it.
    ok(version === undefined || /^[\w.+-]+$/.test(version));
  },
  "exit records": (text) => {
    for (const record of [decodeExitFile(text), decodeExitRecord(text)]) {
      ok(record === undefined || record.signal !== "" || Number.isInteger(record.code));
    }
    startFailure(text);
  },
  "systemctl show": (text) => {
    for (const shown of parseShow(text)) {
      const { cpuSeconds = 0, memoryBytes = 0 } = readUnitUsage(shown);
      ok(cpuSeconds >= 0 && memoryBytes >= 0);
      ok((pidIn(shown["MainPID"]) ?? 1) > 0);
      environmentFileOf(shown);
    }
  },
  "readShimUsage()": (text) => {
    for (const [handle, { cpuSeconds = 0, memoryBytes = 0 }] of readShimUsage(text.split("\n"))) {
      ok(text.includes(handle) && cpuSeconds >= 0 && memoryBytes >= 0);
    }
  },
  "sysfs attributes": (text) => {
    ok((numaNode(text) ?? 0) >= 0 && (rateGbps(text) ?? 1) > 0 && (parseCounter(text) ?? 0) >= 0);
    const index = roceGidIndex(
      [{ index: 3, gid: text, type: "RoCE v2", netDevice: text }],
      new Map(),
    );
    ok(index === undefined || index === 3);
    cpuProblem(text);
    const place = { path: text, numaNode: 0 };
    pciDistance(place, place);
    const at = functionOf(text);
    ok(at === undefined || text.includes(at));
    counterRises(new Map([[text, 1]]), new Map([[text, 2]]));
    saturated(text, 255);
  },
  "classifyGpu()": (text) => {
    const kind = classifyGpu({
      name: text,
      memoryMib: 81_559,
      memoryNotReported: false,
      pciDeviceId: "2330",
      systemMemoryMib: 1_000,
    });
    if ("gpuClass" in kind) ok(/^[a-z0-9.:+-]+$/.test(kind.gpuClass), kind.gpuClass);
  },
  "readLaunchArgs()": (text) => {
    const { context = 1, memoryShare = 1 } = readLaunchArgs(text.split(" "));
    ok(context > 0 && memoryShare > 0 && memoryShare <= 1);
  },
  "redactLine()": (text) => {
    ok(!redactLine(text, ["sk-heddle-replica-x"]).includes("sk-heddle-replica-x"));
  },
  "decodeDocument()": (text) => {
    const decoded = decodeDocument(text, () => aSpec());
    ok(decoded.kind !== "corrupt" || decoded.why !== "");
  },
};

for (const [name, read] of Object.entries(READERS)) {
  Deno.test(`${name} of spoilt text: never throws, and says nothing absurd`, () => {
    fc.assert(fc.property(mutated(TEXTS, PIECES), read), FUZZ_RUNS);
  });
}
