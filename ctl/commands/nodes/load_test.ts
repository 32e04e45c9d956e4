import { equal } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { NodeViewSchema } from "@heddle/proto/gen/admin";
import { loadWords, memoryWords, usagesOf, usageWords } from "./load.ts";

const GIB = 1024n ** 3n;

Deno.test("a node's load and free memory are shown beside what it has, and unknown is empty", () => {
  const node = create(NodeViewSchema, {
    inventory: {
      cpuCount: 64,
      memoryBytes: 512n * GIB,
      load: { load1m: 12.46, memoryAvailableBytes: 410n * GIB },
    },
  });
  equal(loadWords(node), "12.5/64");
  equal(memoryWords(node), "410/512 GiB");
  const quiet = create(NodeViewSchema, { inventory: { cpuCount: 64 } });
  equal(loadWords(quiet) + memoryWords(quiet), "");
  equal(loadWords(create(NodeViewSchema, {})), "");
});

Deno.test("what a shard takes is told as far as it is known", () => {
  const node = create(NodeViewSchema, {
    inventory: {
      load: {
        shards: [
          {
            shardId: "r1-0",
            cpuPercent: 249.6,
            memoryBytes: 12n * GIB,
            gpuMemoryMib: 143_360,
            gpuUtilizationPercent: 97,
          },
          { shardId: "r1-1", memoryBytes: GIB + GIB / 2n },
        ],
      },
    },
  });
  const usages = usagesOf([node, create(NodeViewSchema, {})]);
  equal(usageWords(usages.get("r1-0")), "cpu 250% mem 12 GiB gpu 97% 140 GiB");
  equal(usageWords(usages.get("r1-1")), "mem 1.5 GiB");
  equal(usageWords(usages.get("gone")), "");
});
