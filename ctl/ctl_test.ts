import { deepEqual, equal, match, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  ExplainResponseSchema,
  ListReplicasResponseSchema,
  type NodeView,
  NodeViewSchema,
} from "@heddle/proto/gen/admin";
import { NodeState, type ReplicaState, ShardState } from "@heddle/proto/gen/types";
import { formatExplanation } from "./commands/explain.ts";
import { formatProblems, nodeListing } from "./commands/nodes/list.ts";
import { ranges, replicaListing } from "./commands/replicas/list.ts";
import type { Io } from "./io.ts";
import { toRecord } from "./record.ts";
import { type Output, visible, writeListing } from "./table.ts";

function capture(terminal: boolean): Io & { text: () => string } {
  let text = "";
  return {
    terminal,
    color: false,
    out: (more) => text += more,
    err: () => {},
    text: () => text,
  };
}

function node(): NodeView {
  return create(NodeViewSchema, {
    name: "gpu-1",
    state: NodeState.CORDONED,
    address: "10.0.0.7",
    agentVersion: "0.1.0",
    usedGpus: [0],
    replicaIds: ["demo-1"],
    lastSeenMs: 1_200n,
    cordoned: true,
    decidedBy: "ada",
    inventory: {
      gpus: [
        { index: 0, gpuClass: "h100-80g" },
        { index: 1, gpuClass: "h100-80g" },
        {
          index: 2,
          gpuClass: "",
          problems: [{ reason: "gpu_lost", detail: "GPU is lost", remedy: "reset it" }],
        },
      ],
      fabrics: [{ name: "ib-a", degraded: true }],
    },
  });
}

function render(output: Output, terminal: boolean, rows = [node()]): string {
  const io = capture(terminal);
  writeListing(io, nodeListing(rows), output);
  return io.text();
}

Deno.test("nodes: a terminal gets aligned columns", () => {
  equal(
    render("table", true),
    "NODE   STATE     GPUS FREE  CLASSES                  FABRICS          REPLICAS  LAST SEEN  VERSION\n" +
      "gpu-1  cordoned  1/3        2× h100-80g, 1× unknown  ib-a (degraded)  1         1s ago     0.1.0\n",
  );
});

Deno.test("nodes: a pipe gets the same cells separated by tabs", () => {
  const [head, row] = render("table", false).split("\n");
  equal(head?.split("\t").length, row?.split("\t").length);
  equal(row?.split("\t")[2], "1/3");
});

Deno.test("nodes: json, yaml and csv hold words, not enum numbers", () => {
  const [record] = JSON.parse(render("json", false));
  equal(record.state, "cordoned");
  equal(record.last_seen_ms, 1_200);
  equal(record.inventory.gpus[2].problems[0].reason, "gpu_lost");
  match(render("yaml", false), /state: cordoned/);
  match(render("csv", false), /^name,state,/);
});

Deno.test("nodes: an empty list is [] for machines and a hint for people", () => {
  equal(render("json", false, []), "[]\n");
  equal(render("yaml", false, []), "[]\n");
  match(render("table", true, []), /No node has registered/);
  equal(render("table", false, []).split("\n").length, 2);
});

Deno.test("formatProblems() names every GPU kept out of placement, with what to do", () => {
  equal(
    formatProblems([node()]),
    "\nProblems:\n  gpu-1 GPU 2: gpu_lost: GPU is lost → reset it\n",
  );
});

Deno.test("replicas: shards show their node, GPUs and state; a newer peer's state is unknown", () => {
  const { replicas } = create(ListReplicasResponseSchema, {
    replicas: [{
      replicaId: "r1",
      model: "m",
      profile: "p",
      state: 99 as ReplicaState,
      inStateMs: 61_000n,
      shards: [
        { shardId: "s0", node: "a", gpus: [0, 1, 2, 5], state: ShardState.READY },
        { shardId: "s1", node: "b", state: ShardState.FAILED, reason: "exited", message: "code 1" },
      ],
    }],
  });
  const io = capture(false);
  writeListing(io, replicaListing(replicas), "table");
  equal(
    io.text().split("\n")[1],
    "r1\tm\tp\tunknown\t1m1s\ta[0-2,5] ready, b failed\tunknown\texited: code 1",
  );
  const [first] = replicas;
  ok(first);
  equal(
    toRecord(ListReplicasResponseSchema.fields[0]?.message ?? NodeViewSchema, first)["state"],
    "unknown_99",
  );
});

Deno.test("ranges() folds neighbours", () => {
  deepEqual([[], [3], [1, 0, 2], [0, 2, 3]].map(ranges), ["", "3", "0-2", "0,2-3"]);
});

Deno.test("visible() lets no text move the cursor or add a row", () => {
  equal(visible("a\u001b[2Jb\nc\td"), "a [2Jb c d");
  equal(visible(""), "-");
});

Deno.test("csv: a cell that begins like a formula is quoted", () => {
  const evil = create(NodeViewSchema, { name: '=cmd|"x"', address: "a,b" });
  match(render("csv", false, [evil]), /"'=cmd\|""x""",.*"a,b"/);
});

Deno.test("explain: the summary, the placements, then each node's own line", () => {
  equal(
    formatExplanation(create(ExplainResponseSchema, {
      model: "giant",
      summary: "1/2 nodes fit: 1 gpus_free",
      placements: [{ replicaId: "r", profile: "p", nodes: ["a", "b"], scores: { packing: 0.5 } }],
      rejections: [{ node: "c", profile: "p", reason: "gpus_free", detail: "want 8, have 5" }],
      lastAttemptMs: 3_000n,
    })),
    "giant: 1/2 nodes fit: 1 gpus_free\n" +
      "Placement was last tried 3s ago\n" +
      "  r: profile p on a, b (packing 0.50)\n" +
      "Not used:\n" +
      "  c, p: gpus_free: want 8, have 5\n",
  );
});
