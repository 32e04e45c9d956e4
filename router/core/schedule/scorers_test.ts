import { deepEqual, equal, ok } from "node:assert/strict";
import { keyOf } from "../affinity/rendezvous.ts";
import type { Candidate, Wanted } from "./candidate.ts";
import { candidate, onlyInFlight, wanted } from "./candidate_fake.ts";
import { scoreAll, type ScorerName, type Weights } from "./scorers.ts";

function scores(
  name: ScorerName,
  candidates: readonly Candidate[],
  over: Partial<Wanted> = {},
): readonly number[] {
  const weights: Weights = { ...onlyInFlight, in_flight: 0, [name]: 1 };
  return scoreAll(candidates, wanted(over), weights).byScorer.get(name) ?? [];
}

Deno.test("every scorer gives 1 to the best, less to others, and never leaves [0,1]", () => {
  deepEqual(scores("queue", [candidate("a", { waiting: 0 }), candidate("b", { waiting: 4 })]), [
    1,
    0.5,
  ]);
  deepEqual(scores("in_flight", [candidate("a", { inFlight: 2 }), candidate("b")]), [0.5, 1]);
  deepEqual(
    scores("in_flight", [candidate("a", { inFlight: 4 }, { weight: 4 }), candidate("b")]),
    [2 / 3, 1],
  );
  deepEqual(scores("kv_cache", [candidate("a", { kvUsage: 0.25 }), candidate("b")]), [0.75, NaN]);
  deepEqual(
    scores("reserved_tokens", [candidate("a", { reservedTokens: 2_048 }), candidate("b")]),
    [0.5, 1],
  );
  const line = { constantMs: 80, msPerToken: 0 };
  deepEqual(
    scores("latency", [
      candidate("a", { firstToken: line }),
      candidate("b", { firstToken: { ...line, constantMs: 180 } }),
    ]),
    [1, 0.5],
  );
});

Deno.test("who does not say is neither better nor worse off: it gets the mean of the others", () => {
  const { totals } = scoreAll(
    [candidate("a", { kvUsage: 0.2 }), candidate("b", { kvUsage: 0.6 }), candidate("c")],
    wanted(),
    { ...onlyInFlight, in_flight: 0, kv_cache: 1 },
  );
  deepEqual(totals.map((total) => Math.round(total * 100)), [80, 40, 60]);
  // Of whom nobody says anything, nothing counts.
  const none = scoreAll([candidate("a"), candidate("b")], wanted(), {
    ...onlyInFlight,
    kv_cache: 5,
    queue: 5,
  });
  deepEqual(none.totals, [1, 1]);
  deepEqual([...none.byScorer.keys()], ["in_flight"]);
});

Deno.test("latency counts what must be computed first: the backlog, others' queue, the own prompt", () => {
  const first = (over: Omit<Partial<Candidate>, "endpoint">) =>
    scores("latency", [
      candidate("a"),
      candidate("b", { ...over, firstToken: { constantMs: 50, msPerToken: 1 } }),
    ], { promptTokens: 1_000 })[1] ?? NaN;
  ok(first({ cachedTokens: 900 }) > first({}));
  ok(first({ backlogTokens: 3_000 }) < first({}));
  ok(first({ waiting: 4 }) < first({}));
  equal(first({ waiting: 4, pending: 4 }), first({}));
  ok(first({ oldestPendingMs: 60_000 }) < first({}));
});

Deno.test("prefix wants the replica that has the most of the prompt, unless it is overloaded", () => {
  const has = (over: Omit<Partial<Candidate>, "endpoint"> = {}) =>
    candidate("a", { cachedTokens: 900, ...over });
  const ask = { promptTokens: 1_000, conversation: 5 };
  const [with_ = 0, without = 0] = scores("prefix", [has(), candidate("b")], ask);
  ok(with_ > 0.6 && without <= 0.1);
  deepEqual(scores("prefix", [has({ inFlight: 30 }), candidate("b")], ask)[0], 0);
  ok(
    (scores("prefix", [has({ inFlight: 30 }), candidate("b", { inFlight: 20 })], ask)[0] ?? 0) >
      0.6,
  );
  deepEqual(scores("prefix", [has(), candidate("b")]), []);
  // Of a short prompt little can be saved.
  const short = scores("prefix", [has({ cachedTokens: 20 }), candidate("b")], {
    promptTokens: 20,
    conversation: 5,
  });
  ok((short[0] ?? 1) < 0.3);
});

Deno.test("a conversation that nobody has, and a session, have one home among the same replicas", () => {
  const replicas = ["a", "b", "c", "d"].map((id) => candidate(id));
  const homes = new Set<number>();
  for (let index = 0; index < 40; index++) {
    const key = keyOf(`conversation ${index}`);
    const prefix = scores("prefix", replicas, { conversation: key });
    const session = scores("session", replicas, { session: key });
    equal(prefix.filter((score) => score > 0).length, 1);
    deepEqual(session.toSorted(), [0, 0, 0, 1]);
    equal(prefix.findIndex((score) => score > 0), session.indexOf(1));
    homes.add(session.indexOf(1));
  }
  equal(homes.size, 4);
});
