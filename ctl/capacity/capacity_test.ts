import { deepEqual, equal, match, throws } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  type ModelCapacity,
  ModelCapacitySchema,
  RecordMeasurementResponseSchema,
} from "@heddle/proto/gen/capacity";
import { everyForm } from "../golden_fake.ts";
import { capacityListing } from "./capacity_listing.ts";
import { doubtWords, storedWords } from "./measurement_words.ts";
import { weightChanges, withWeights } from "./weights.ts";

const MEASURED = {
  model: "demo",
  profile: "fast",
  engine: "vllm",
  engineVersion: "0.28.1",
  hardwareClass: "h100-80g",
  shape: "chat",
  ttftMs: 1_000,
  tpotMs: 40,
  requestsPerSecond: 6.14,
  concurrency: 24,
  within: 0.98,
  atMs: 1_800_000_000_500n,
  by: "ann",
};
const FAST = {
  profile: "fast",
  hardwareClass: "h100-80g",
  gpus: 2,
  nodes: 1,
  weight: 1,
  measuredWeight: 100,
  readyReplicas: 2,
  mostReplicas: 3,
  measured: MEASURED,
};
const SLOW = {
  ...FAST,
  profile: "slow",
  hardwareClass: "l4-24g",
  measuredWeight: 25,
  readyReplicas: 1,
  mostReplicas: 1,
  measured: { ...MEASURED, profile: "slow", requestsPerSecond: 1.5 },
};

function capacity(parts: object = {}): ModelCapacity {
  return create(ModelCapacitySchema, {
    model: "demo",
    shape: "chat",
    profiles: [FAST],
    nowPerSecond: 12.28,
    mostPerSecond: 18.42,
    bottleneck: "scaling_max",
    bottleneckDetail: "scaling.max is 3",
    gains: [{
      hardwareClass: "h100-80g",
      gpus: 8,
      likeNode: "gpu-1",
      replicas: 4,
      nodes: 1,
      requestsPerSecond: 24.56,
      detail: "scaling.max, 3, must rise for it",
    }],
    ...parts,
  });
}

Deno.test("capacity: every form says what is carried, what holds it, and what one more node adds", () => {
  const forms = everyForm(capacityListing([capacity()]));
  const words =
    "\ndemo, requests of shape chat: 12.3 a second now, 18.4 with everything running that fits\n" +
    "  fast on h100-80g: 2 ready, 3 at most, weight 1, by measurement 100 (--apply sets it); " +
    "6.14/s each (vllm 0.28.1, 24 at a time, first token within 1000 ms and 40 ms a token, " +
    "2027-01-15 08:00:00Z by ann)\n" +
    "  Held by scaling max: scaling.max is 3\n" +
    "  One more node like gpu-1: 24.6 a second by 4 replicas (8× h100-80g); scaling.max, 3, must " +
    "rise for it\n";
  equal(
    forms.table,
    "MODEL  SHAPE  NOW/S  AT MOST/S  HELD BY      ONE MORE NODE\n" +
      "demo   chat   12.3   18.4       scaling max  8× h100-80g +24.6\n" + words,
  );
  equal(
    forms.wide,
    "MODEL  SHAPE  NOW/S  AT MOST/S  HELD BY      ONE MORE NODE      NEVER MEASURED  WHY\n" +
      "demo   chat   12.3   18.4       scaling max  8× h100-80g +24.6  0               " +
      "scaling.max is 3\n" + words,
  );
  equal(
    forms.pipe,
    "MODEL\tSHAPE\tNOW/S\tAT MOST/S\tHELD BY\tONE MORE NODE\n" +
      "demo\tchat\t12.3\t18.4\tscaling max\t8× h100-80g +24.6\n",
  );
  const [record] = JSON.parse(forms.json);
  deepEqual(Object.keys(record), [
    "model",
    "shape",
    "ttft_ms",
    "tpot_ms",
    "profiles",
    "now_per_second",
    "most_per_second",
    "unmeasured_replicas",
    "bottleneck",
    "bottleneck_detail",
    "gains",
    "incomplete",
  ]);
  equal(record.profiles[0].measured.requests_per_second, 6.14);
  match(forms.yaml, /^- model: demo\n {2}shape: chat\n/);
  match(forms.csv, /^model,shape,ttft_ms,tpot_ms,profiles,.*\r\ndemo,chat,,,"\[\{/);
});

Deno.test("capacity: what nobody measured is a question mark, and says how to measure it", () => {
  const unknown = capacity({
    profiles: [{
      ...FAST,
      measured: undefined,
      measuredWeight: 0,
      notes: ["measured for rag only"],
    }],
    nowPerSecond: 0,
    mostPerSecond: 0,
    unmeasuredReplicas: 3,
    bottleneck: "not_measured",
    bottleneckDetail: "no profile that runs was measured for chat",
    gains: [
      { hardwareClass: "cpu", likeNode: "n", detail: "no limit", nodes: 1, reason: "unlimited" },
      { hardwareClass: "l4-24g", gpus: 1, likeNode: "o", detail: "GPUs 1 of 2", reason: "no_room" },
      {
        ...{ hardwareClass: "h100-80g", gpus: 8, likeNode: "p", nodes: 1, replicas: 4 },
        ...{ detail: "what would run there was never measured", reason: "not_measured" },
      },
    ],
  });
  equal(
    everyForm(capacityListing([unknown])).table,
    "MODEL  SHAPE  NOW/S  AT MOST/S  HELD BY       ONE MORE NODE\n" +
      "demo   chat   ?      ?          not measured  cpu: unknown, 1× l4-24g: none fits, " +
      "8× h100-80g: not measured\n" +
      "\ndemo, requests of shape chat: nobody has measured how many a second it carries\n" +
      "  fast on h100-80g: 2 ready, 3 at most, weight 1; never measured for chat: heddle bench " +
      "demo --profile fast --shape chat; measured for rag only\n" +
      "  Held by not measured: no profile that runs was measured for chat\n" +
      "  One more node like n: nothing that can be told (cpu); no limit\n" +
      "  One more node like o: nothing, no replica fits there (1× l4-24g); GPUs 1 of 2\n" +
      "  One more node like p: 4 replicas, and nobody knows how much they carry (8× h100-80g); " +
      "what would run there was never measured\n",
  );
  equal(everyForm(capacityListing([])).json, "[]\n");
  equal(everyForm(capacityListing([])).table, "The catalog has no models\n");
});

Deno.test("capacity: what did not repeat is about so much, and nothing ready is said in words", () => {
  const unstable = { ...MEASURED, unstable: true, spread: 0.12 };
  const doubted = capacity({
    profiles: [{ ...FAST, measured: unstable, readyReplicas: 0, notes: ["not stable: …"] }],
    nowPerSecond: 0,
  });
  match(
    everyForm(capacityListing([doubted])).table,
    /chat {3}0 {6}~18\.4 .*\n\ndemo, requests of shape chat: none now \(no replica is ready\), ~18\.4 with everything running that fits\n.*; about 6\.14\/s each \(.*\); not stable: …\n/,
  );
  const other = capacity({
    profiles: [{ ...FAST, readyReplicas: 0 }, { ...SLOW, measured: undefined }],
    nowPerSecond: 0,
  });
  match(
    everyForm(capacityListing([other])).table,
    /now an unknown number a second \(what is ready was never measured\), 18\.4/,
  );
});

Deno.test("storedWords() says what was stored and where it counts, and what is doubtful about it", () => {
  const stored = (parts: object, kept = false) =>
    storedWords(
      create(RecordMeasurementResponseSchema, { measurement: { ...MEASURED, ...parts }, kept }),
    );
  const carries = "one replica of profile fast on h100-80g carries ";
  const seen = "heddle capacity demo --shape chat\n";
  equal(
    stored({}),
    `Stored: ${carries}6.14 requests of shape chat a second. What the fleet carries by it: ${seen}`,
  );
  equal(
    stored({ unstable: true, spread: 0.123 }),
    `Stored: ${carries}about 6.14 requests of shape chat a second. Marked as not stable: repeated ` +
      "measurements were 12 % apart. Measure again while nothing else sends there, or for longer: " +
      `--seconds. What the fleet carries by it: ${seen}`,
  );
  match(
    stored({}, true),
    /^Not stored, because it is not stable and an earlier one is: .* by ann\)/,
  );
});

Deno.test("doubtWords() names the profiles whose weights rest on what did not repeat", () => {
  equal(doubtWords(capacity({ profiles: [FAST, { ...SLOW, measured: undefined }] })), "");
  const measured = { ...MEASURED, unstable: true, spread: 0.234 };
  equal(
    doubtWords(capacity({ profiles: [FAST, { ...SLOW, measured }] })),
    "Not stable: profile slow was measured 23 % apart. Measure it again while nothing else sends " +
      "there: heddle bench demo --profile slow --shape chat\n",
  );
});

Deno.test("weightChanges() says what measurements ask for, or what is missing for it", () => {
  deepEqual(weightChanges(capacity({ profiles: [FAST, SLOW] })), [
    { profile: "fast", from: 1, to: 100 },
    { profile: "slow", from: 1, to: 25 },
  ]);
  deepEqual(
    weightChanges(capacity({ profiles: [{ ...FAST, weight: 100 }, { ...SLOW, weight: 25 }] })),
    [],
  );
  throws(() => weightChanges(capacity()), /has one profile/);
  const half = [{ ...FAST, measuredWeight: 0 }, {
    ...SLOW,
    measuredWeight: 0,
    measured: undefined,
  }];
  throws(
    () => weightChanges(capacity({ profiles: half })),
    /slow was never measured for chat\. heddle bench demo --profile slow --shape chat/,
  );
});

const CATALOG = `# the fleet
models:
  - name: other
    source: s
    profiles: [{name: fast, gpu_class: a}] # not this one
  - name: demo # this one
    source: s
    profiles:
      - &fast {name: fast, gpu_class: a}
      - name: slow
        gpu_class: b
        weight: 7 # by hand
`;

Deno.test("withWeights() changes the weights of one model, and not a comment beside them", () => {
  const changed = withWeights(CATALOG, "demo", [
    { profile: "fast", from: 1, to: 100 },
    { profile: "slow", from: 7, to: 25 },
  ]);
  equal(
    changed,
    CATALOG.replace(
      "&fast {name: fast, gpu_class: a}",
      "&fast { name: fast, gpu_class: a, weight: 100 }",
    )
      .replace("[{name: fast, gpu_class: a}] #", "[ { name: fast, gpu_class: a } ] #")
      .replace("weight: 7 #", "weight: 25 #"),
  );
  throws(
    () => withWeights(CATALOG, "gone", [{ profile: "p", from: 1, to: 2 }]),
    /"gone" is not in/,
  );
  throws(() => withWeights(CATALOG, "demo", [{ profile: "p", from: 1, to: 2 }]), /"p" is not in/);
});
