import assert from "node:assert/strict";
import { statsLine } from "./stats_line.ts";

const ZERO = { promptTokens: 0, generatedTokens: 0, cacheQueries: 0, cacheHits: 0 };
const IDLE = { running: 0, waiting: 0, cacheUsage: 0, seconds: 10 };

Deno.test("statsLine() tells rates between two moments, in vLLM's words", () => {
  const before = { promptTokens: 100, generatedTokens: 50, cacheQueries: 100, cacheHits: 0 };
  const after = { promptTokens: 300, generatedTokens: 1_050, cacheQueries: 300, cacheHits: 50 };
  assert.equal(
    statsLine(before, after, { running: 3, waiting: 1, cacheUsage: 0.125, seconds: 10 }),
    "Engine 000: Avg prompt throughput: 20.0 tokens/s, Avg generation throughput: 100.0 tokens/s, " +
      "Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 25.0%",
  );
});

Deno.test("statsLine() is silent while nothing happens, but not while requests hang", () => {
  assert.equal(statsLine(ZERO, ZERO, IDLE), undefined);
  assert.match(statsLine(ZERO, ZERO, { ...IDLE, running: 1 }) ?? "", /Running: 1 reqs/);
});
