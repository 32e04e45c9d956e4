import { equal } from "node:assert/strict";
import fc from "fast-check";
import type { EngineSample } from "./engine_sample.ts";
import { ReplicaLoad } from "./replica_load.ts";

const STALE_MS = 6_000;
const WORK = { tokens: 500, uncached: 300, streamed: true } as const;

function said(over: Partial<EngineSample> = {}): EngineSample {
  return {
    running: 10,
    waiting: 2,
    kvUsage: 0.5,
    kvTokens: 10_000,
    prefixQueries: undefined,
    prefixHits: undefined,
    ...over,
  };
}

Deno.test("ReplicaLoad carries the engine's word forward by what was sent and what ended since", () => {
  const load = new ReplicaLoad();
  const first = load.begin(WORK, 0);
  load.observe(said(), 0);
  equal(load.present(0, STALE_MS).waiting, 2);
  load.begin(WORK, 1);
  load.begin(WORK, 1);
  equal(load.present(1, STALE_MS).waiting, 4);
  equal(load.present(1, STALE_MS).kvUsage, 0.6);
  load.end(first);
  equal(load.present(1, STALE_MS).waiting, 3);
  load.setOthers({ inFlight: 5, reservedTokens: 2_000 });
  equal(load.present(1, STALE_MS).waiting, 8);
  equal(load.present(1, STALE_MS).othersInFlight, 5);
});

Deno.test("ReplicaLoad knows nothing of what an engine did not say, or said too long ago", () => {
  const load = new ReplicaLoad();
  equal(load.present(0, STALE_MS).waiting, undefined);
  load.observe(said({ waiting: undefined }), 0);
  equal(load.present(0, STALE_MS).waiting, undefined);
  equal(load.present(STALE_MS, STALE_MS).kvUsage, 0.5);
  equal(load.present(STALE_MS + 1, STALE_MS).kvUsage, undefined);
});

Deno.test("ReplicaLoad tells a queue that stands from one that was there for a moment", () => {
  const load = new ReplicaLoad();
  load.observe(said({ waiting: 9 }), 0);
  equal(load.present(0, STALE_MS).standing, 0);
  load.observe(said({ waiting: 5 }), 2_000);
  equal(load.present(2_000, STALE_MS).standing, 5);
  load.begin(WORK, 2_001);
  equal(load.present(2_001, STALE_MS).standing, 5);
});

Deno.test("ReplicaLoad takes an answer that is not streamed to have begun when it was due", () => {
  const load = new ReplicaLoad();
  load.begin({ ...WORK, streamed: false }, 0);
  equal(load.present(0, STALE_MS).backlogTokens, 300);
  equal(load.present(60_000, STALE_MS).backlogTokens, 0);
  load.begin(WORK, 0);
  equal(load.present(60_000, STALE_MS).backlogTokens, 300);
  equal(load.present(60_000, STALE_MS).oldestPendingMs, 60_000);
});

Deno.test("ReplicaLoad is at zero once everything has ended, and never below", () => {
  const ops = fc.array(
    fc.record({ op: fc.constantFrom("begin", "first", "end"), which: fc.nat(8), ms: fc.nat(500) }),
    { maxLength: 60 },
  );
  fc.assert(fc.property(ops, (steps) => {
    const load = new ReplicaLoad();
    const works: ReturnType<typeof load.begin>[] = [];
    let now = 0;
    for (const { op, which, ms } of steps) {
      now += ms;
      if (op === "begin") works.push(load.begin({ ...WORK, streamed: which % 2 === 0 }, now));
      const work = works[which];
      if (op === "first" && work !== undefined) load.firstToken(work, now);
      if (op === "end" && work !== undefined) load.end(works.splice(which, 1)[0] ?? work);
      const present = load.present(now, STALE_MS);
      equal(present.inFlight, works.length);
      equal(present.pending >= 0 && present.pending <= works.length, true);
      equal(present.backlogTokens, present.pending * WORK.uncached);
    }
    for (const work of works) load.end(work);
    const { inFlight, reservedTokens, backlogTokens } = load.present(now, STALE_MS);
    equal(inFlight + reservedTokens + backlogTokens, 0);
  }));
});
