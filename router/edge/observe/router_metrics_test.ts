import { deepEqual, equal, ok } from "node:assert/strict";
import { Registry } from "prom-client";
import { type Present, routerMetrics } from "./router_metrics.ts";

function replica(replicaId: string): ReturnType<Present["replicas"]>[number] {
  return {
    replicaId,
    inFlight: 0,
    breaker: "closed",
    reservedTokens: 0,
    capacity: 1,
    engineName: "vllm",
    engine: undefined,
    prefixBlocks: 0,
    prefixTrust: 1,
  };
}

function present(replicas: () => readonly string[]): Present {
  return {
    inFlight: () => 0,
    tenancy: () => ({
      keys: 0,
      reservedTokens: 0,
      scopes: 0,
      ledgerBytes: 0,
      ledgerUnwritten: 0,
      ledgerLost: 0,
    }),
    held: () => new Map(),
    replicas: () => replicas().map(replica),
    queued: () => [],
    saturations: () => [],
    cached: () => ({ expected: 0, found: 0 }),
    connections: () => ({ busy: 0, idle: 0 }),
    control: undefined,
  };
}

/** The replicas that a histogram has a count for. */
async function counted(registry: Registry, name: string): Promise<string[]> {
  const text = await registry.metrics();
  return [...text.matchAll(new RegExp(`^${name}_count\\{.*replica="([^"]+)"`, "gm"))]
    .map(([, replica]) => replica ?? "");
}

const FIRST = "heddle_router_first_content_seconds";

Deno.test("histograms by replica lose the series of replicas that are gone", async () => {
  let there = ["a", "b"];
  const registry = new Registry();
  const metrics = routerMetrics(registry, present(() => there));
  for (const replica of there) {
    metrics.firstContent({ model: "m", replica }, 10);
    metrics.contentGap({ model: "m", replica }, 10);
  }
  deepEqual(await counted(registry, FIRST), ["a", "b"]);
  there = ["b"];
  deepEqual(await counted(registry, FIRST), ["b"]);
  deepEqual(await counted(registry, "heddle_router_content_gap_seconds"), ["b"]);
  there = ["a", "b"];
  metrics.firstContent({ model: "m", replica: "a" }, 10);
  deepEqual((await counted(registry, FIRST)).sort(), ["a", "b"]);
});

Deno.test("histograms by replica have a bound, and count what is beyond it as one", async () => {
  const there = Array.from({ length: 1_100 }, (_, index) => `r${index}`);
  const registry = new Registry();
  const metrics = routerMetrics(registry, present(() => there));
  for (const replica of there) metrics.firstContent({ model: "m", replica }, 10);
  const replicas = await counted(registry, FIRST);
  equal(replicas.length, 1_001);
  ok(replicas.includes("(other)"));
  const text = await registry.metrics();
  ok(text.includes(`${FIRST}_count{model="m",replica="(other)"} 100`));
});

Deno.test("what engines say has one name for all, which engine it is, and no value for what is unsaid", async () => {
  const registry = new Registry();
  const none = { kvTokens: undefined, prefixQueries: undefined, prefixHits: undefined };
  const said = { vllm: { running: 2, kvUsage: 0.5 }, llamacpp: { running: 1, kvUsage: undefined } };
  routerMetrics(registry, {
    ...present(() => []),
    replicas: () => [
      ...Object.entries(said).map(([engineName, sample]) => ({
        ...replica(`${engineName}-1`),
        engineName,
        engine: { sample: { ...none, waiting: undefined, ...sample }, ageMs: 1_500 },
      })),
      replica("silent"),
    ],
  });
  const text = await registry.metrics();
  deepEqual(text.split("\n").filter((line) => line.startsWith("heddle_engine_")), [
    'heddle_engine_requests_running{replica="vllm-1",engine="vllm"} 2',
    'heddle_engine_requests_running{replica="llamacpp-1",engine="llamacpp"} 1',
    'heddle_engine_kv_cache_usage_ratio{replica="vllm-1",engine="vllm"} 0.5',
    'heddle_engine_sample_age_seconds{replica="vllm-1",engine="vllm"} 1.5',
    'heddle_engine_sample_age_seconds{replica="llamacpp-1",engine="llamacpp"} 1.5',
  ]);
});
