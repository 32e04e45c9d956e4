import assert from "node:assert/strict";
import fc from "fast-check";
import type { Engine, EngineOptions } from "./engine.ts";
import { engineCase, firstOutputs, promptCase, requestCase, runEngine } from "./engine_case.ts";

/** How far from the configured speed a measured one may be. */
const TOLERANCE = 0.1;

const speeds = fc.record({
  prefillTokensPerS: fc.integer({ min: 100, max: 200_000 }),
  decodeTokensPerS: fc.integer({ min: 5, max: 500 }),
  share: fc.integer({ min: 2, max: 60 }),
}).map(({ share, ...speed }) => ({
  ...speed,
  decodeTokensPerSTotal: speed.decodeTokensPerS * share,
}));

function near(actual: number, wanted: number): boolean {
  return Math.abs(actual - wanted) <= wanted * TOLERANCE;
}

/** Tokens per second of each of `batch` requests that decode together. */
function decodeRate(options: Partial<EngineOptions>, batch: number): number {
  const engine = engineCase({ sequencesMax: 512, stepTokensMax: 65_536, ...options });
  const tokens = 40;
  for (let index = 0; index < batch; index += 1) {
    engine.submit(
      requestCase(`r${index}`, {
        seed: index,
        promptTokens: promptCase(2, index),
        tokensMax: tokens,
      }),
      0,
    );
  }
  const times = runEngine(engine).filter(({ id }) => id === "r0").map(({ at }) => at);
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000;
  return (tokens - 1) / seconds;
}

function timeToFirstToken(engine: Engine, prompt: readonly number[], now: number): number {
  const id = `at ${now}`;
  engine.submit(requestCase(id, { promptTokens: prompt, tokensMax: 1 }), now);
  return (firstOutputs(runEngine(engine)).get(id) ?? NaN) - now;
}

Deno.test("Engine gives a request that is alone its configured decode rate", () => {
  fc.assert(fc.property(speeds, (speed) => {
    assert.ok(near(decodeRate({ speed }, 1), speed.decodeTokensPerS));
  }));
});

Deno.test("Engine slows each request as the batch fills, and never exceeds its total", () => {
  const sizes = [1, 2, 4, 8, 16, 32, 64, 128];
  fc.assert(
    fc.property(speeds, (speed) => {
      const rates = sizes.map((size) => decodeRate({ speed }, size));
      for (const [index, size] of sizes.entries()) {
        const rate = rates[index] ?? NaN;
        if (index > 0) assert.ok(rate < (rates[index - 1] ?? NaN));
        assert.ok(rate * size <= speed.decodeTokensPerSTotal * 1.0001);
      }
    }),
    { numRuns: 20 },
  );
});

Deno.test("Engine's total saturates within 10 % of the configured total", () => {
  fc.assert(
    fc.property(speeds, (speed) => {
      // Saturation is what a batch well beyond total/alone approaches.
      const batch = Math.ceil((3 * speed.decodeTokensPerSTotal) / speed.decodeTokensPerS);
      const total = decodeRate({ speed }, batch) * batch;
      assert.ok(near(total, speed.decodeTokensPerSTotal), `${total}`);
      const double = decodeRate({ speed }, batch * 2) * batch * 2;
      assert.ok(double < total * (1 + TOLERANCE), "twice the batch gives no more");
    }),
    { numRuns: 15 },
  );
});

Deno.test("Engine's time to first token is linear in the prompt, at the prefill rate", () => {
  const prompts = fc.integer({ min: 1, max: 4_000 });
  const overheads = fc.integer({ min: 0, max: 200 });
  fc.assert(fc.property(speeds, prompts, overheads, (speed, length, overheadMs) => {
    const ms = timeToFirstToken(engineCase({ speed, overheadMs }), promptCase(length, 1), 0);
    assert.ok(near(ms, overheadMs + (length * 1000) / speed.prefillTokensPerS));
  }));
});

Deno.test("Engine's time to first token depends only on the prompt that is not cached", () => {
  const blocks = fc.integer({ min: 1, max: 100 });
  const rest = fc.integer({ min: 1, max: 1_000 });
  fc.assert(fc.property(speeds, blocks, rest, (speed, cachedBlocks, freshTokens) => {
    const engine = engineCase({ speed });
    const head = promptCase(cachedBlocks * 16, 1);
    timeToFirstToken(engine, [...head, 7], 0);
    const prompt = [...head, ...promptCase(freshTokens, 2)];
    const ms = timeToFirstToken(engine, prompt, 1e6);
    assert.ok(near(ms, (freshTokens * 1000) / speed.prefillTokensPerS), `${ms} ms`);
  }));
});

Deno.test("Engine's time to first token grows with the queue", () => {
  const counts = fc.integer({ min: 2, max: 40 });
  const lengths = fc.integer({ min: 100, max: 3_000 });
  fc.assert(
    fc.property(speeds, counts, lengths, (speed, count, length) => {
      const engine = engineCase({ speed, blockCount: 16_384 });
      for (let index = 0; index < count; index += 1) {
        const promptTokens = promptCase(length, index);
        engine.submit(requestCase(`r${index}`, { promptTokens, tokensMax: 1 }), 0);
      }
      const first = [...firstOutputs(runEngine(engine)).values()];
      assert.ok(first.every((at, index) => index === 0 || at >= (first[index - 1] ?? NaN)));
      const wanted = (count * length * 1000) / speed.prefillTokensPerS;
      assert.ok(near(first.at(-1) ?? NaN, wanted), "the last waits for all before it");
    }),
    { numRuns: 30 },
  );
});

Deno.test("Engine makes a request wait while as many as may run are running", () => {
  const engine = engineCase({ sequencesMax: 2 });
  for (const index of [0, 1, 2]) {
    engine.submit(requestCase(`r${index}`, { seed: index, tokensMax: 20 }), 0);
  }
  engine.advance(100);
  assert.deepEqual({ ...engine.gauges, cacheUsage: 0 }, { running: 2, waiting: 1, cacheUsage: 0 });
  const outputs = runEngine(engine);
  const ended = outputs.filter(({ finish }) => finish !== undefined);
  const thirdStarts = firstOutputs(outputs).get("r2") ?? NaN;
  assert.ok(thirdStarts > (ended[0]?.at ?? NaN), "the third starts when the first has ended");
});
