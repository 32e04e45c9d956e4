import { deepEqual, equal, ok } from "node:assert/strict";
import { after, CLOSED } from "../fleet/breaker.ts";
import type { Candidate } from "./candidate.ts";
import { candidate, onlyInFlight, wanted } from "./candidate_fake.ts";
import { pick, type PickOptions } from "./pick.ts";

const OPEN_CONNECT = after(CLOSED, { kind: "connect", retryAfterMs: 0 }, 0);
const OPEN_FAULT = [1, 2, 3].reduce(
  (breaker) => after(breaker, { kind: "fault", retryAfterMs: 0 }, 0),
  CLOSED,
);

function picked(candidates: Candidate[], over: Partial<PickOptions> = {}): string {
  const result = pick({
    candidates,
    wanted: wanted(),
    weights: onlyInFlight,
    chance: 0,
    now: 0,
    ...over,
  });
  return result.kind === "picked" ? result.candidate.endpoint.replicaId : "none";
}

Deno.test("pick() takes the endpoint with the fewest requests for its weight", () => {
  equal(picked([candidate("a", { inFlight: 2 }), candidate("b", { inFlight: 1 })]), "b");
  equal(
    picked([
      candidate("a", { inFlight: 3 }, { weight: 4 }),
      candidate("b", { inFlight: 1 }),
    ]),
    "a",
  );
  equal(picked([candidate("a", { othersInFlight: 2 }), candidate("b", { inFlight: 1 })]), "b");
});

Deno.test("pick() takes the one replica that is asked for, also a full one, and else none", () => {
  const full = candidate("a", { inFlight: 300 });
  const all = [full, candidate("b"), candidate("c", {}, { draining: true })];
  equal(picked(all, { wanted: wanted({ only: "a" }) }), "a");
  equal(picked(all, { wanted: wanted({ only: "b" }) }), "b");
  for (const only of ["c", "d", ""]) equal(picked(all, { wanted: wanted({ only }) }), "none");
});

Deno.test("pick() decides between equals by chance, in proportion to weights", () => {
  const equals = [candidate("a", {}, { weight: 1 }), candidate("b", {}, { weight: 3 })];
  const counts = { a: 0, b: 0 };
  for (let index = 0; index < 100; index++) {
    const id = picked(equals, { chance: index / 100 });
    if (id === "a" || id === "b") counts[id]++;
  }
  deepEqual(counts, { a: 25, b: 75 });
});

Deno.test("pick() uses lower priorities only when the higher ones cannot be used", () => {
  const low = candidate("low", {}, { priority: -1 });
  equal(picked([low, candidate("high", { inFlight: 100 })]), "high");
  equal(picked([low, candidate("high", { breaker: OPEN_CONNECT })]), "low");
});

Deno.test("pick() asks a degraded endpoint only when no healthy and no busy one is left", () => {
  const doubted = candidate("a", {}, { degraded: true });
  equal(picked([doubted, candidate("z", { inFlight: 50 })]), "z");
  equal(picked([doubted, candidate("z", {}, { priority: -5 })]), "z");
  equal(picked([doubted, candidate("z", { busyUntil: 10 })]), "z");
  equal(picked([doubted, candidate("z", { breaker: OPEN_FAULT })]), "a");
  equal(picked([doubted]), "a");
});

Deno.test("pick() leaves out who drains, who was tried, whose breaker is open, who is busy", () => {
  const other = candidate("z", { inFlight: 50 });
  equal(picked([candidate("a", {}, { draining: true }), other]), "z");
  equal(picked([candidate("a"), other], { wanted: wanted({ tried: new Set(["a"]) }) }), "z");
  equal(picked([candidate("a", { breaker: OPEN_FAULT }), other]), "z");
  equal(picked([candidate("a", { busyUntil: 10 }), other], { now: 9 }), "z");
  equal(picked([candidate("a", { busyUntil: 10 }), other], { now: 10 }), "a");
});

Deno.test("pick() says why each one was left out when none is left", () => {
  const result = pick({
    candidates: [
      candidate("a", {}, { draining: true }),
      candidate("b"),
      candidate("c", { breaker: OPEN_CONNECT }),
    ],
    wanted: wanted({ tried: new Set(["b"]) }),
    weights: onlyInFlight,
    chance: 0,
    now: 0,
  });
  deepEqual(result, {
    kind: "none",
    rejections: [
      { replicaId: "a", reason: "draining" },
      { replicaId: "b", reason: "already_tried" },
      { replicaId: "c", reason: "breaker_open" },
    ],
  });
});

Deno.test("pick() would rather try a busy one, or one that faulted, than refuse", () => {
  equal(picked([candidate("a", { busyUntil: 10 }), candidate("b", { breaker: OPEN_FAULT })]), "a");
  equal(
    picked([candidate("a", { breaker: OPEN_CONNECT }), candidate("b", { breaker: OPEN_FAULT })]),
    "b",
  );
  equal(picked([candidate("a", { breaker: OPEN_CONNECT })]), "none");
  const drains = candidate("b", { breaker: OPEN_FAULT }, { draining: true });
  equal(picked([drains]), "none");
});

Deno.test("pick() asks a full one, or one whose context is too short, only when nobody else is left", () => {
  const long = { wanted: wanted({ promptTokens: 10_000 }) };
  const full = candidate("a", { inFlight: 4, capacity: 4 });
  equal(picked([full, candidate("z", { inFlight: 50 })]), "z");
  equal(picked([full, candidate("z", { inFlight: 3, capacity: 3 })]), "z");
  const short = candidate("a", {}, { maxModelLen: 4_096 });
  equal(picked([short, candidate("z", { inFlight: 50 }, { maxModelLen: 8_192 })], long), "z");
  equal(picked([short, candidate("z", { inFlight: 50 })], long), "z");
  // Tokens are estimated: what might just fit is tried.
  equal(
    picked([short, candidate("z", { inFlight: 50 })], {
      wanted: wanted({ promptTokens: 5_000 }),
    }),
    "a",
  );
  equal(picked([short, candidate("z", {}, { maxModelLen: 4_097 })], long), "z");
});

Deno.test("pick() tells every candidate's scores, and why the others do not count", () => {
  const result = pick({
    candidates: [
      candidate("a", { inFlight: 2 }),
      candidate("b"),
      candidate("c", {}, { priority: -1 }),
      candidate("d", {}, { draining: true }),
    ],
    wanted: wanted(),
    weights: onlyInFlight,
    chance: 0,
    now: 0,
  });
  ok(result.kind === "picked");
  deepEqual(result.compared.map(({ endpoint }) => endpoint.replicaId), ["a", "b"]);
  deepEqual(result.scored.totals, [0.5, 1]);
  deepEqual(result.rejections, [
    { replicaId: "d", reason: "draining" },
    { replicaId: "c", reason: "lower_priority" },
  ]);
});
