import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import type { Endpoint } from "./core/fleet/endpoint.ts";
import type { Judgement } from "./core/fleet/judgement.ts";
import { EMPTY_TABLE, type TableUpdate } from "./core/fleet/table.ts";
import { candidate, onlyInFlight, wanted } from "./core/schedule/candidate_fake.ts";
import { Endpoints, type Slot } from "./endpoints.ts";

const MODEL = {
  name: "m",
  aliases: [],
  fallbacks: [],
  routingProfile: "",
  reason: "",
  wakeable: false,
  createdS: 0,
};

function update(sequence: number, ids: readonly number[]): TableUpdate {
  return {
    revision: { term: 1, sequence },
    snapshot: true,
    snapshotEnd: true,
    models: [MODEL],
    removedModels: [],
    endpoints: ids.map((id): Endpoint => candidate(`r${id}`).endpoint),
    removedReplicas: [],
    settledNodes: [],
    settled: true,
  };
}

const ASK = {
  ...wanted(),
  blocks: { hashes: [1, 2, 3], head: 1 },
  profile: "chat",
  weights: onlyInFlight,
} as const;

function endpointsAt(now: () => number): Endpoints {
  return new Endpoints({
    fixed: EMPTY_TABLE,
    now,
    random: () => 0.5,
    scheduling: {
      staleMs: 6_000,
      targets: { kvUsage: 0.9, waiting: 8 },
      capacityOf: () => undefined,
    },
  });
}

type Action =
  | { readonly kind: "take" }
  | { readonly kind: "judge"; readonly slot: number; readonly judgement: Judgement }
  | { readonly kind: "release"; readonly slot: number }
  | { readonly kind: "table"; readonly ids: readonly number[] }
  | { readonly kind: "wait"; readonly ms: number };

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    fc.constant({ kind: "take" } as const),
    fc.record({
      kind: fc.constant("judge" as const),
      slot: fc.nat(20),
      judgement: fc.record({
        kind: fc.constantFrom("success", "connect", "fault", "busy"),
        retryAfterMs: fc.nat(5_000),
      }),
    }),
    fc.record({ kind: fc.constant("release" as const), slot: fc.nat(20) }),
    fc.record({
      kind: fc.constant("table" as const),
      ids: fc.uniqueArray(fc.nat(4), { maxLength: 5 }),
    }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(40_000) }),
  ),
  { maxLength: 60 },
);

Deno.test("Endpoints counts each request exactly once, whatever happens to it and to the table", () => {
  fc.assert(fc.property(actions, (steps) => {
    let now = 0;
    const endpoints = endpointsAt(() => now);
    const held: Slot[] = [];
    const expected = new Map<string, number>();
    let sequence = 1;
    let table = new Set([0, 1, 2].map((id) => `r${id}`));
    endpoints.apply(update(sequence, [0, 1, 2]));
    for (const step of steps) {
      if (step.kind === "take") {
        const taken = endpoints.take("m", ASK);
        if (!("endpoint" in taken)) continue;
        const { replicaId } = taken.endpoint;
        ok(table.has(replicaId), "a replica that left the table got a request");
        held.push(taken);
        expected.set(replicaId, (expected.get(replicaId) ?? 0) + 1);
      } else if (step.kind === "judge") held[step.slot]?.judge(step.judgement);
      else if (step.kind === "release") {
        const [slot] = held.splice(step.slot, 1);
        if (slot === undefined) continue;
        slot[Symbol.dispose]();
        slot[Symbol.dispose]();
        const { replicaId } = slot.endpoint;
        expected.set(replicaId, (expected.get(replicaId) ?? 0) - 1);
      } else if (step.kind === "table") {
        endpoints.apply(update(++sequence, step.ids));
        table = new Set(step.ids.map((id) => `r${id}`));
      } else now += step.ms;
      const counted = new Map(endpoints.replicas().map((r) => [r.replicaId, r.inFlight]));
      for (const [id, count] of expected) equal(counted.get(id) ?? 0, count, id);
      for (const id of counted.keys()) ok(table.has(id) || (expected.get(id) ?? 0) > 0);
    }
    for (const slot of held) slot[Symbol.dispose]();
    deepEqual(
      endpoints.replicas().map(({ replicaId, inFlight }) => [replicaId, inFlight]).sort(),
      [...table].sort().map((id) => [id, 0]),
    );
  }));
});

Deno.test("Endpoints keeps a replica's breaker over an update, and drops it with the address", () => {
  const endpoints = endpointsAt(() => 0);
  endpoints.apply(update(1, [0]));
  const slot = endpoints.take("m", ASK);
  ok("endpoint" in slot);
  slot.judge({ kind: "connect", retryAfterMs: 0 });
  slot[Symbol.dispose]();
  endpoints.apply(update(2, [0, 1]));
  equal(endpoints.replicas().find(({ replicaId }) => replicaId === "r0")?.breaker, "open");
  const moved = update(3, [0, 1]);
  endpoints.apply({
    ...moved,
    endpoints: moved.endpoints.map((endpoint) => ({
      ...endpoint,
      origin: { ...endpoint.origin, port: 2 },
    })),
  });
  equal(endpoints.replicas().find(({ replicaId }) => replicaId === "r0")?.breaker, "closed");
});
