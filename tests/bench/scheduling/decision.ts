/**
 * What one decision costs, at 10, 100 and 1,000 replicas that are busy and have prompts in common:
 * choosing among all of them, and hashing prompts of 4 and 50 KB before.
 *
 *   deno run -P=test tests/bench/scheduling/decision.ts
 */
import xxhash from "xxhash-wasm";
import { blocksOf } from "../../../router/core/affinity/blocks.ts";
import { EMPTY_TABLE } from "../../../router/core/fleet/table.ts";
import { candidate, wanted } from "../../../router/core/schedule/candidate_fake.ts";
import { WEIGHTS_DEFAULT } from "../../../router/core/schedule/routing_profile.ts";
import { Endpoints, type Slot } from "../../../router/endpoints.ts";
import { say } from "../../../tools/say.ts";
import { percentile, seeded } from "../../scheduling/traffic.ts";

const { h64Raw: hash } = await xxhash();
const TIMES = 400;
const WARM = 100;

function timed(act: (index: number) => void): readonly number[] {
  const found: number[] = [];
  for (let index = 0; index < TIMES + WARM; index++) {
    const from = performance.now();
    act(index);
    if (index >= WARM) found.push(performance.now() - from);
  }
  return found;
}

function told(name: string, ms: readonly number[]): void {
  const of = (share: number) => (percentile(ms, share) * 1_000).toFixed(0).padStart(7);
  say(`${name.padEnd(36)} p50 ${of(0.5)} µs   p99 ${of(0.99)} µs`);
}

function promptOf(bytes: number, salt: string) {
  const text = `${salt} ${"some words of a prompt ".repeat(bytes / 23)}`;
  return blocksOf({ text, headEnd: text.length }, { hash, salt: "tenant", data: [] });
}

function decisions(count: number): readonly number[] {
  const random = seeded(1);
  let now = 0;
  const endpoints = new Endpoints({
    fixed: EMPTY_TABLE,
    now: () => now,
    random,
    scheduling: {
      staleMs: 1e9,
      targets: { kvUsage: 0.95, waiting: 8 },
      capacityOf: () => undefined,
    },
  });
  endpoints.apply({
    revision: { term: 1, sequence: 1 },
    snapshot: true,
    snapshotEnd: true,
    models: [],
    removedModels: [],
    endpoints: Array.from({ length: count }, (_, index) => candidate(`r${index}`).endpoint),
    removedReplicas: [],
    settledNodes: [],
    settled: true,
  });
  for (let index = 0; index < count; index++) {
    endpoints.observe(`r${index}`, {
      running: 10,
      waiting: index % 3,
      kvUsage: random(),
      kvTokens: 500_000,
      prefixQueries: 0,
      prefixHits: 0,
    });
  }
  const asks = Array.from({ length: 50 }, (_, index) => {
    const blocks = promptOf(8_000, `prompt ${index % 10}`);
    return {
      ...wanted({ promptTokens: 2_000, tokens: 2_500, conversation: blocks.head }),
      blocks,
      profile: "chat" as const,
      weights: WEIGHTS_DEFAULT.chat,
    };
  });
  const held: Slot[] = [];
  return timed((index) => {
    now += 1;
    const ask = asks[index % asks.length];
    if (ask === undefined) return;
    const slot = endpoints.take("m", ask);
    if ("endpoint" in slot) held.push(slot);
    if (held.length > 3 * count) held.shift()?.[Symbol.dispose]();
  });
}

if (import.meta.main) {
  for (const count of [10, 100, 1_000]) told(`choosing among ${count}`, decisions(count));
  for (const kb of [4, 50]) {
    told(`hashing a prompt of ${kb} KB`, timed((index) => void promptOf(kb * 1_024, `${index}`)));
  }
}
