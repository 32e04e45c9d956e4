import assert from "node:assert/strict";
import fc from "fast-check";
import type { EngineOutput } from "./engine.ts";
import { engineCase, promptCase, requestCase, runEngine } from "./engine_case.ts";

interface Arrival {
  readonly afterMs: number;
  readonly prompt: number;
  readonly tokens: number;
  /** How long the client stays; undefined for to the end. */
  readonly abortAfterMs: number | undefined;
}

const arrivals: fc.Arbitrary<Arrival[]> = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 60 }),
    prompt: fc.integer({ min: 1, max: 120 }),
    tokens: fc.integer({ min: 1, max: 60 }),
    abortAfterMs: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
  }),
  { minLength: 1, maxLength: 25 },
);

/** So small that sequences are preempted, chunked and queued all the time. */
const TIGHT = { contextTokensMax: 192, blockCount: 16, sequencesMax: 6, stepTokensMax: 48 };

interface Run {
  readonly outputs: EngineOutput[];
  readonly aborted: string[];
  readonly metrics: string;
  readonly usage: number;
}

/** Plays the arrivals; `lateMs` is how rarely the caller looks, 0 for at every event. */
function play(all: readonly Arrival[], lateMs: number): Run {
  const engine = engineCase(TIGHT);
  const outputs: EngineOutput[] = [];
  const aborted: string[] = [];
  const events: { at: number; act: (now: number) => void }[] = [];
  let at = 0;
  for (const [index, arrival] of all.entries()) {
    at += arrival.afterMs;
    const id = `r${index}`;
    const request = requestCase(id, {
      seed: index,
      promptTokens: promptCase(arrival.prompt, index % 3),
      tokensMax: arrival.tokens,
    });
    events.push({ at, act: (now) => engine.submit(request, now) });
    if (arrival.abortAfterMs === undefined) continue;
    events.push({
      at: at + arrival.abortAfterMs,
      act: (now) => {
        if (engine.abort(id, now)) aborted.push(id);
      },
    });
  }
  for (const event of events.sort((a, b) => a.at - b.at)) {
    outputs.push(...(lateMs === 0 ? runEngine(engine, event.at) : engine.advance(event.at)));
    event.act(event.at);
  }
  if (lateMs === 0) outputs.push(...runEngine(engine));
  for (let now = at; engine.nextEventAt() !== undefined; now += lateMs) {
    outputs.push(...engine.advance(now));
  }
  return {
    outputs,
    aborted,
    metrics: engine.metrics.render(engine.gauges),
    usage: engine.gauges.cacheUsage,
  };
}

function metric(text: string, line: string): number {
  const found = text.split("\n").find((one) => one.startsWith(line));
  return Number(found?.split(" ").at(-1));
}

Deno.test("Engine ends every request exactly once and gives all its blocks back", () => {
  let preempted = 0;
  fc.assert(
    fc.property(arrivals, (all) => {
      const run = play(all, 0);
      const ended = run.outputs.filter(({ finish }) => finish !== undefined).map(({ id }) => id);
      assert.deepEqual(
        [...ended, ...run.aborted].sort(),
        all.map((_, index) => `r${index}`).sort(),
      );
      assert.equal(run.usage, 0);
      assert.equal(metric(run.metrics, "vllm:num_requests_running"), 0);
      assert.equal(metric(run.metrics, "vllm:num_requests_waiting{"), 0);
      const label = 'vllm:request_success_total{model_name="case",engine="0",finished_reason';
      assert.equal(metric(run.metrics, `${label}="abort"`), run.aborted.length);
      preempted += metric(run.metrics, "vllm:num_preemptions_total");
    }),
    { numRuns: 200 },
  );
  assert.ok(preempted > 0, "the case is tight enough to preempt");
});

Deno.test("Engine gives a request the tokens it would get alone, whatever else runs", () => {
  fc.assert(
    fc.property(arrivals, (all) => {
      const run = play(all.map((arrival) => ({ ...arrival, abortAfterMs: undefined })), 0);
      for (const [index, arrival] of all.entries()) {
        const alone = engineCase();
        alone.submit(requestCase("alone", { seed: index, tokensMax: arrival.tokens }), 0);
        assert.deepEqual(
          run.outputs.filter(({ id }) => id === `r${index}`).map(({ token }) => token),
          runEngine(alone).map(({ token }) => token),
        );
      }
    }),
    { numRuns: 60 },
  );
});

Deno.test("Engine does the same at the same times when it is asked the same", () => {
  fc.assert(
    fc.property(arrivals, (all) => assert.deepEqual(play(all, 0), play(all, 0))),
    { numRuns: 60 },
  );
});

Deno.test("Engine's times do not depend on how late its caller looks", () => {
  fc.assert(
    fc.property(arrivals, fc.integer({ min: 1, max: 500 }), (all, lateMs) => {
      assert.deepEqual(play(all, lateMs), play(all, 0));
    }),
    { numRuns: 100 },
  );
});
