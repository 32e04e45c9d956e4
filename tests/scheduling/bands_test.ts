import { equal, ok } from "node:assert/strict";
import type { Band } from "../../router/core/admission/band.ts";
import type { BandBounds } from "../../router/core/admission/model_queue.ts";
import { type Fate, type FleetOptions, SimulatedFleet } from "./simulated_fleet.ts";
import { percentile, type Stream, stream } from "./traffic.ts";

const MINUTE = 60_000;
const LONG = 60 * MINUTE;
/** Until a replica's capacity has been found. */
const WARM_MS = 30_000;

const BOUNDS: BandBounds = {
  requestsMax: 100_000,
  bytesMax: 1e12,
  waitMsMax: 10 * MINUTE,
  promoteAfterMs: MINUTE,
};
const BANDS = { platinum: BOUNDS, gold: BOUNDS, silver: BOUNDS, bronze: BOUNDS };

/**
 * Two small replicas, slow ones: hours cost seconds. Together they make some 240 tokens a
 * second, which is nine of these requests.
 */
const SMALL: Omit<FleetOptions, "bounds"> = {
  replicas: 2,
  engine: {
    sequencesMax: 24,
    speed: { prefillTokensPerS: 2_500, decodeTokensPerS: 12, decodeTokensPerSTotal: 120 },
  },
};

const PLATINUM: Stream = {
  band: "platinum",
  tenant: "people",
  perSecond: 1.5,
  fromMs: 0,
  untilMs: LONG,
  promptTokens: 90,
  answerTokens: 24,
  seed: 1,
};
const BATCH: Stream = { ...PLATINUM, band: "bronze", tenant: "batch", perSecond: 6, seed: 2 };

function fleet(streams: readonly Stream[], over: Partial<FleetOptions> = {}): SimulatedFleet {
  const made = new SimulatedFleet({ ...SMALL, bounds: BANDS, ...over });
  for (const each of streams) made.arrive(stream(each));
  return made;
}

function served(fates: readonly Fate[], band: Band): readonly Fate[] {
  return fates.filter(({ request, outcome }) =>
    request.band === band && request.at > WARM_MS && outcome === "served"
  );
}

function waits(fates: readonly Fate[]): number[] {
  return fates.map(({ letInAt, request }) => (letInAt ?? NaN) - request.at);
}

function firstTokens(fates: readonly Fate[]): number[] {
  return fates.map(({ firstTokenAt, request }) => (firstTokenAt ?? NaN) - request.at);
}

Deno.test("an hour of batch at ten times the load: platinum does not wait, nor slow down", () => {
  const atTarget = fleet([PLATINUM, BATCH]);
  atTarget.run(LONG);
  const flooded = fleet([PLATINUM, { ...BATCH, perSecond: 10 * BATCH.perSecond }]);
  flooded.run(LONG);
  const calm = served(atTarget.fates, "platinum");
  const stormy = served(flooded.fates, "platinum");
  ok(stormy.length > 5_000);
  const waitP99 = percentile(waits(stormy), 0.99);
  ok(waitP99 <= 50, `platinum waited ${waitP99} ms`);
  const ratio = percentile(firstTokens(stormy), 0.99) / percentile(firstTokens(calm), 0.99);
  ok(ratio <= 1.1, `platinum's first token came ${ratio} times as late`);
  // Batch is not kept out either: what platinum leaves is used.
  ok(served(flooded.fates, "bronze").length >= 0.95 * served(atTarget.fates, "bronze").length);
});

Deno.test("batch alone may use everything", () => {
  const alone = fleet([{ ...BATCH, perSecond: 60, untilMs: 5 * MINUTE }], { capacity: 24 });
  alone.run(4 * MINUTE);
  equal(alone.endpoints.replicas().reduce((sum, { inFlight }) => sum + inFlight, 0), 48);
});

Deno.test("two tenants, ten to one in load, share alike in tokens, whatever their requests are", () => {
  const shared = fleet([
    { ...BATCH, tenant: "many", perSecond: 30, promptTokens: 60, answerTokens: 12, seed: 3 },
    { ...BATCH, tenant: "few", perSecond: 3, promptTokens: 180, answerTokens: 60, seed: 4 },
  ]);
  shared.run(20 * MINUTE);
  const tokens = (tenant: string) =>
    shared.fates.filter(({ request, outcome }) =>
      request.tenant === tenant && outcome === "served" && request.at > WARM_MS
    ).reduce((sum, { request }) => sum + request.promptTokens + request.answerTokens, 0);
  const ratio = tokens("many") / tokens("few");
  ok(ratio > 0.93 && ratio < 1.07, `the shares are ${ratio}`);
});

Deno.test("a bronze request is served within its bound while better bands take everything", () => {
  const promoteAfterMs = 30_000;
  const full = fleet([{ ...PLATINUM, perSecond: 12, untilMs: 5 * MINUTE }], {
    bounds: { ...BANDS, bronze: { ...BOUNDS, promoteAfterMs } },
    capacity: 24,
  });
  const bronze = [...stream({ ...BATCH, perSecond: 1, fromMs: MINUTE, untilMs: MINUTE + 5_000 })];
  full.arrive(bronze.slice(0, 3));
  full.run(5 * MINUTE);
  const fates = full.fates.filter(({ request }) => request.band === "bronze");
  equal(fates.length, 3);
  // One is promoted each time, and a place is free within seconds.
  for (const [index, { request, letInAt }] of fates.entries()) {
    const waited = (letInAt ?? Infinity) - request.at;
    ok(waited <= (index + 1) * (promoteAfterMs + 2_000), `number ${index} waited ${waited} ms`);
  }
  ok(full.fates.some(({ outcome }) => outcome === "waits"));
});

Deno.test("a burst between two scrapes is shared: no replica gets more than its part", () => {
  const replicas = 8;
  const burst = new SimulatedFleet({ replicas, bounds: BANDS, scrapeMs: 60_000 });
  burst.run(1_000);
  const random = stream({ ...PLATINUM, perSecond: 20_000, fromMs: 1_000, untilMs: 1_010 });
  const requests = [...random];
  burst.arrive(requests);
  burst.run(1_011);
  const counts = burst.endpoints.replicas().map(({ inFlight }) => inFlight);
  equal(counts.reduce((sum, count) => sum + count, 0), requests.length);
  const part = requests.length / replicas;
  for (const count of counts) ok(count <= part * 1.25 + 1, `${counts}`);
});

Deno.test("conversations stay where their beginning is, until that would overload a replica", () => {
  const prompt = Array.from({ length: 2_000 }, (_, index) => 5_000 + index);
  const turn = (at: number, more: number) => ({
    at,
    band: "silver" as const,
    tenant: "t",
    promptTokens: prompt.length + more,
    prompt: () => [...prompt, ...Array.from({ length: more }, (_, index) => 90_000 + index)],
    answerTokens: 20,
  });
  const calm = new SimulatedFleet({ replicas: 8, bounds: BANDS });
  calm.arrive([0, 1, 2, 3, 4].map((index) => turn(5_000 * (index + 1), 100 * index)));
  calm.run(60_000);
  equal(new Set(calm.fates.map(({ replicaId }) => replicaId)).size, 1);
  ok(calm.fates.slice(1).every(({ cachedTokens }) => cachedTokens >= 1_900));
  const crowd = new SimulatedFleet({ replicas: 8, bounds: BANDS });
  crowd.arrive(Array.from({ length: 200 }, (_, index) => turn(1_000 + index, index % 7)));
  crowd.run(60_000);
  const counts = new Map<string | undefined, number>();
  for (const { replicaId } of crowd.fates) counts.set(replicaId, (counts.get(replicaId) ?? 0) + 1);
  ok(Math.max(...counts.values()) <= 60, `${[...counts.values()]}`);
});

Deno.test("every simulated request ends once, and nothing is left counted", () => {
  const busy = fleet(
    [{ ...PLATINUM, perSecond: 6 }, { ...BATCH, perSecond: 20 }].map((each) => ({
      ...each,
      untilMs: 3 * MINUTE,
    })),
    { bounds: { ...BANDS, bronze: { ...BOUNDS, requestsMax: 200, waitMsMax: 20_000 } } },
  );
  busy.run(20 * MINUTE);
  for (const { outcome } of busy.fates) ok(["served", "rejected", "expired"].includes(outcome));
  const outcomes = new Set(busy.fates.map(({ outcome }) => outcome));
  ok(outcomes.has("rejected") && outcomes.has("expired"));
  equal(busy.admission.waiting().length, 0);
  for (const { inFlight, reservedTokens } of busy.endpoints.replicas()) {
    equal(inFlight, 0);
    equal(reservedTokens, 0);
  }
});
