import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  ApplyCatalogResponseSchema,
  CatalogPlanSchema,
  ExplainResponseSchema,
  GetVersionResponseSchema,
  ListReplicasResponseSchema,
  type NodeView,
  NodeViewSchema,
} from "@heddle/proto/gen/admin";
import { NodeState, type ReplicaState, ShardState } from "@heddle/proto/gen/types";
import { applied } from "./commands/catalog/apply.ts";
import { formatPlan } from "./commands/catalog/plan.ts";
import { formatExplanation } from "./commands/explain.ts";
import { formatProblems, nodeListing } from "./commands/nodes/list.ts";
import { ranges, replicaListing } from "./commands/replicas/list.ts";
import { formatControl } from "./commands/version.ts";
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
      "gpu-1  cordoned  1/3        2× h100-80g, 1× unknown  ib-a (degraded)  1         1s ago     0.1.0\n" +
      "\nProblems:\n  gpu-1 GPU 2: gpu_lost: GPU is lost → reset it\n",
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
      placements: [{
        replicaId: "r",
        profile: "p",
        nodes: ["a", "b"],
        scores: { packing: 0.5 },
        notes: ["no NVLink clique of 8"],
      }],
      rejections: [{ node: "c", profile: "p", reason: "gpus_free", detail: "want 8, have 5" }],
      lastAttemptMs: 3_000n,
    })),
    "giant: 1/2 nodes fit: 1 gpus_free\n" +
      "Placement was last tried 3s ago\n" +
      "  r: profile p on a, b (packing 0.50); no NVLink clique of 8\n" +
      "Not used for one more:\n" +
      "  c, p: gpus_free: want 8, have 5\n",
  );
});

Deno.test("plan: what changes, what that starts and stops, and what stands in the way", () => {
  equal(
    formatPlan(create(CatalogPlanSchema, {
      revision: 3n,
      changes: [
        { model: "big", kind: "added" },
        { model: "demo", kind: "replaced", parts: ["profile fp8", "scaling"] },
        { model: "old", kind: "removed" },
      ],
      starts: [{ model: "demo", profile: "fp8", nodes: ["a", "b"] }],
      stops: [{
        model: "old",
        profile: "p",
        nodes: ["a"],
        replicaId: "old-1-1",
        reason: "model_removed",
      }],
      kept: 1,
      shortages: [{ model: "big", wanted: 2, detail: "0/2 nodes fit: 2 gpus_free" }],
      waitReason: "stops_many",
      waitDetail: "it would stop 1 of 2 running replicas",
    })),
    "Against revision 3\n" +
      "Models:\n" +
      "  + big added\n" +
      "  ~ demo replaced: profile fp8, scaling (its engines are replaced)\n" +
      "  - old removed\n" +
      "Would start:\n" +
      "  demo: profile fp8 on a, b\n" +
      "Would stop:\n" +
      "  old-1-1: profile p on a: model_removed\n" +
      "Would be short:\n" +
      "  big: 0 of 2 would run: 0/2 nodes fit: 2 gpus_free\n" +
      "1 replica goes on as it is\n" +
      "Waits for apply --yes: it would stop 1 of 2 running replicas\n",
  );
  equal(
    formatPlan(create(CatalogPlanSchema, { revision: 3n, kept: 2 })),
    "No change against revision 3\n2 replicas go on as they are\n",
  );
});

Deno.test("plan: an engine that takes another's place is one line, from where and to where", () => {
  const profile = "p";
  const reason = "profile_changed";
  equal(
    formatPlan(create(CatalogPlanSchema, {
      revision: 3n,
      changes: [{ model: "m", kind: "replaced", parts: ["profile p"] }],
      starts: [
        { model: "m", profile, nodes: ["c"], replaces: "m-1-1" },
        { model: "m", profile, nodes: ["b"], replaces: "m-1-2" },
        { model: "m", profile, nodes: ["d"] },
      ],
      stops: [
        { model: "m", profile, nodes: ["a"], replicaId: "m-1-1", reason },
        { model: "m", profile, nodes: ["b"], replicaId: "m-1-2", reason },
      ],
    })),
    "Against revision 3\n" +
      "Models:\n" +
      "  ~ m replaced: profile p (its engines are replaced)\n" +
      "Would move:\n" +
      "  m-1-1: profile p on a → profile p on c: profile_changed\n" +
      "Would replace:\n" +
      "  m-1-2: profile p on b → profile p on b: profile_changed\n" +
      "Would start:\n" +
      "  m: profile p on d\n" +
      "0 replicas go on as they are\n",
  );
});

Deno.test("apply: says the revision, that nothing changed, or why it waits and how to go on", () => {
  const answer = create(ApplyCatalogResponseSchema, { applied: true, revision: 7n });
  equal(
    applied(answer, { file: "c.yaml", before: 6n }),
    "Applied as revision 7; watch it with: heddle models\n",
  );
  equal(
    applied(answer, { file: "c.yaml", before: 7n }),
    "Nothing changed: c.yaml is what is acted on already, revision 7\n",
  );
  const waits = create(ApplyCatalogResponseSchema, { waitDetail: "it would stop 3 of 4" });
  throws(
    () => applied(waits, { file: "c.yaml", before: 0n }),
    /it would stop 3 of 4\. .*apply c\.yaml --yes/,
  );
});

Deno.test("version: says whether control leads, and who does when it does not", () => {
  const say = (parts: Parameters<typeof create<typeof GetVersionResponseSchema>>[1]) =>
    formatControl(create(GetVersionResponseSchema, { version: "0.1.0", cluster: "lab", ...parts }));
  equal(say({ term: 3n, settled: true }), "0.1.0 (cluster lab, term 3)");
  equal(
    say({ name: "a", leading: true, term: 3n }),
    '0.1.0 "a" (cluster lab, term 3, still settling)',
  );
  equal(
    say({ name: "b", leader: "a", leaderAddress: "10.0.0.1:9090" }),
    '0.1.0 "b" (cluster lab, stands by: control "a" at 10.0.0.1:9090 leads)',
  );
  equal(
    say({ name: "b", unsure: "its store does not answer" }),
    '0.1.0 "b" (cluster lab, stands by, its store does not answer)',
  );
});
