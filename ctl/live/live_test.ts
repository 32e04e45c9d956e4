import { deepEqual, equal, match } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ModelViewSchema, NodeViewSchema, ReplicaViewSchema } from "@heddle/proto/gen/admin";
import { FleetEventSchema, ModelTrafficSchema } from "@heddle/proto/gen/live";
import { NodeState, ReplicaState, ShardState } from "@heddle/proto/gen/types";
import { everyForm } from "../golden_fake.ts";
import { eventListing, formatEvent } from "./event_listing.ts";
import { formatTop, type Moment, topRecord } from "./top_screen.ts";

const LOST = create(FleetEventSchema, {
  number: 7n,
  atMs: 1_800_000_000_500n,
  kind: "node",
  subject: "gpu-1",
  text: "ready → lost: \u001b[2Jfan",
  bad: true,
  next: "repair it",
});

Deno.test("events: every form, and a name that moves no cursor", () => {
  const forms = everyForm(eventListing([LOST]));
  const table = "WHEN                  WHAT  NAME   EVENT                  WHAT TO DO\n" +
    "2027-01-15 08:00:00Z  node  gpu-1  ready → lost:  [2Jfan  repair it\n";
  deepEqual([forms.table, forms.wide], [table, table]);
  equal(
    forms.pipe,
    "WHEN\tWHAT\tNAME\tEVENT\tWHAT TO DO\n" +
      "2027-01-15 08:00:00Z\tnode\tgpu-1\tready → lost:  [2Jfan\trepair it\n",
  );
  deepEqual(JSON.parse(forms.json), [{
    number: 7,
    at_ms: 1_800_000_000_500,
    kind: "node",
    subject: "gpu-1",
    text: "ready → lost: \u001b[2Jfan",
    bad: true,
    next: "repair it",
  }]);
  match(forms.yaml, /^- number: 7\n {2}at_ms: 1800000000500\n {2}kind: node\n/);
  match(forms.csv, /^number,at_ms,kind,subject,text,bad,next\r\n7,1800000000500,node,gpu-1,/);
  match(everyForm(eventListing([])).table, /^Nothing has changed/);
});

Deno.test("events -f: a line for each, red on a terminal that has colours, JSON where asked", () => {
  const line = "2027-01-15 08:00:00Z  node     gpu-1                     ready → lost:  [2Jfan";
  const form = { output: "table", terminal: true, color: false } as const;
  const below = "    → repair it\n";
  equal(formatEvent(LOST, form), `${line}\n${below}`);
  equal(formatEvent({ ...LOST, next: "" }, form), `${line}\n`);
  equal(formatEvent(LOST, { ...form, color: true }), `\u001b[31m${line}\u001b[0m\n${below}`);
  equal(
    formatEvent(LOST, { ...form, terminal: false }),
    "2027-01-15 08:00:00Z\tnode\tgpu-1\tready → lost:  [2Jfan\trepair it\n",
  );
  equal(JSON.parse(formatEvent(LOST, { ...form, output: "json" })).number, 7);
});

const traffic = (model: string, requestsPerSecond: number) =>
  create(ModelTrafficSchema, {
    model,
    requestsPerSecond,
    inFlight: 3,
    waiting: 1,
    ...(requestsPerSecond === 0 ? {} : {
      ...{ ttftP50Ms: 80, ttftP99Ms: 912, cacheHitShare: 0.35 },
      queue: { gold: 3, bronze: 12 },
    }),
  });

const MOMENT: Moment = {
  cluster: "lab",
  models: ["idle", "busy", "third"].map((name) =>
    create(ModelViewSchema, { name, desiredReplicas: 2, readyReplicas: 1 })
  ),
  nodes: [
    create(NodeViewSchema, {
      name: "n1",
      state: NodeState.READY,
      usedGpus: [0],
      inventory: {
        gpus: [{ index: 0 }, { index: 1 }],
        cpuCount: 64,
        load: { load1m: 12.5, shards: [{ shardId: "s", gpuUtilizationPercent: 97 }] },
      },
    }),
    create(NodeViewSchema, { name: "n2", state: NodeState.LOST }),
  ],
  replicas: [
    create(ReplicaViewSchema, { replicaId: "busy-1", model: "busy", state: ReplicaState.READY }),
    create(ReplicaViewSchema, {
      replicaId: "busy-2",
      model: "busy",
      state: ReplicaState.READY,
      inFlight: 9,
      shards: [{ node: "n1" }],
    }),
  ],
  traffic: [traffic("idle", 0), traffic("busy", 2.5)],
  all: traffic("", 2.5),
};

Deno.test("top: the busiest first, and all of it where the screen is high enough", () => {
  equal(
    formatTop(MOMENT, 40),
    `lab: 2.5 requests a second, 0 fail, 0 late; 3 in flight, 1 waiting (gold 3, bronze 12); 1 of 2 GPUs used

MODEL  READY  REQ/S  FAIL/S  LATE/S  IN FLIGHT  WAITING  QUEUE BY BAND      TTFT P99  CACHED
busy   1/2    2.5    0       0       3          1        gold 3, bronze 12  912 ms    35 %
idle   1/2    0      0       0       3          1        -                  -         -
third  1/2    -      -       -       0          0        -                  -         -

NODE  STATE  GPUS USED  GPU   LOAD     MEMORY FREE
n1    ready  1/2        97 %  12.5/64  -
n2    lost   0/0        -     -        -

REPLICA  STATE  NODES  IN FLIGHT
busy-2   ready  n1     9
busy-1   ready  -      -
`,
  );
});

Deno.test("top: a degraded replica says so, and why", () => {
  const degraded = create(ReplicaViewSchema, {
    replicaId: "busy-3",
    state: ReplicaState.READY,
    shards: [{ shardId: "busy-3/0", node: "n1", state: ShardState.DEGRADED, reason: "no_token" }],
  });
  const moment = { ...MOMENT, replicas: [degraded, ...MOMENT.replicas] };
  match(
    formatTop(moment, 40),
    /\nREPLICA {2}STATE {5}NODES {2}IN FLIGHT {2}REASON\nbusy-2 {3}ready {5}n1 {5}9 {10}-\nbusy-1 .*\nbusy-3 {3}degraded {2}n1 {5}- {10}shard busy-3\/0 on n1 is degraded: no_token\n$/,
  );
  deepEqual(topRecord(moment).replicas.map(({ state, reason }) => [state, reason]), [
    ["degraded", "shard busy-3/0 on n1 is degraded: no_token"],
    ["ready", ""],
    ["ready", ""],
  ]);
});

Deno.test("top: a low screen gets no more lines than it has, and hears of the rest", () => {
  for (const lines of [11, 12, 13, 14, 24]) {
    const text = formatTop(MOMENT, lines);
    equal(text.split("\n").length - 1 <= lines, true, `${lines}:\n${text}`);
  }
  match(formatTop(MOMENT, 11), /REPLICA.* … and 1 more\nbusy-2/);
  match(
    formatTop({ ...MOMENT, traffic: [], all: undefined }, 40),
    /^lab: no sample of traffic yet; /,
  );
});

Deno.test("top: machines get numbers, and null for what is not known", () => {
  const { models: [first], nodes, replicas, ...rest } = topRecord(MOMENT);
  deepEqual(rest, {
    cluster: "lab",
    requests_per_second: 2.5,
    failures_per_second: 0,
    slo_misses_per_second: 0,
    in_flight: 3,
    waiting: 1,
    ttft_p50_ms: 80,
    ttft_p99_ms: 912,
    cache_hit_share: 0.35,
    queue: { platinum: 0, gold: 3, silver: 0, bronze: 12 },
  });
  deepEqual([first?.model, first?.requests_per_second], ["busy", 2.5]);
  deepEqual(nodes.map(({ gpu_percent }) => gpu_percent), [97, null]);
  deepEqual(replicas.map(({ in_flight }) => in_flight), [null, 9]);
});

Deno.test("events: CSV without an event has its heads all the same", () => {
  equal(everyForm(eventListing([])).csv, "number,at_ms,kind,subject,text,bad,next\r\n");
});
