import { equal } from "node:assert/strict";
import { missedSlo, type Slo, type Timed } from "./slo.ts";

const BOTH: Slo = { ttftMs: 500, tpotMs: 50 };

function request(over: Partial<Timed> = {}): Timed {
  return {
    outcome: "ok",
    stream: true,
    durationMs: 900,
    firstContentMs: 400,
    usage: { promptTokens: 10, completionTokens: 11 },
    ...over,
  };
}

const CASES: readonly (readonly [string, Slo, Partial<Timed>, boolean])[] = [
  ["a stream that keeps both", BOTH, {}, false],
  ["a first token that is late", BOTH, { firstContentMs: 501 }, true],
  ["tokens that are slow", BOTH, { durationMs: 901 }, true],
  ["one token has no time between tokens", BOTH, {
    durationMs: 9_000,
    usage: { promptTokens: 1, completionTokens: 1 },
  }, false],
  ["slow tokens where only the first is promised", { ttftMs: 500 }, { durationMs: 9_000 }, false],
  ["a late first token where only the others are promised", { tpotMs: 50 }, {
    firstContentMs: 5_000,
    durationMs: 5_500,
  }, false],
  ["nothing is promised", {}, { firstContentMs: 60_000, durationMs: 90_000 }, false],
  ["a whole answer within both times together", BOTH, {
    stream: false,
    firstContentMs: 1_000,
    durationMs: 1_000,
  }, false],
  ["a whole answer beyond them", BOTH, {
    stream: false,
    firstContentMs: 1_001,
    durationMs: 1_001,
  }, true],
  ["a whole answer, of which one time alone says nothing", { tpotMs: 50 }, {
    stream: false,
    durationMs: 60_000,
  }, false],
  ["a client that left before anything came, too late", BOTH, {
    outcome: "client_closed",
    firstContentMs: undefined,
    durationMs: 501,
    usage: undefined,
  }, true],
  ["a client that left before it was late", BOTH, {
    outcome: "client_closed",
    firstContentMs: undefined,
    durationMs: 499,
    usage: undefined,
  }, false],
  ["every replica said that it is full", BOTH, { outcome: "engine_saturated" }, true],
  ["an engine was silent for too long", BOTH, { outcome: "engine_timeout" }, true],
  ["a failure", BOTH, { outcome: "engine_failed", durationMs: 60_000 }, false],
  ["a mistake of the client", BOTH, { outcome: "engine_refused", durationMs: 60_000 }, false],
];

for (const [what, slo, over, missed] of CASES) {
  Deno.test(`missedSlo() of ${what} is ${missed}`, () => {
    equal(missedSlo(slo, request(over)), missed);
  });
}
