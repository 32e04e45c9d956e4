import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { failureRecords, type Failures } from "./deciding/failures.ts";
import type { OperatorEvent } from "./event.ts";
import { observe } from "./observing/observe.ts";
import { type StoreRecord, storeRecords } from "./store_record.ts";
import { modelOf, registered, T0, worldWith } from "./testing/builders.ts";
import { casesOf } from "./testing/random.ts";
import type { Decisions, World } from "./world.ts";

const node = fc.constantFrom("n1", "n2");
const model = fc.constantFrom("m", "gone");
const words = { by: fc.constant("ops"), reason: fc.constantFrom("", "why") };

const event: fc.Arbitrary<OperatorEvent> = fc.oneof(
  fc.record({ kind: fc.constantFrom("cordon" as const, "drain" as const), node, ...words }),
  fc.record({ kind: fc.constant("uncordon" as const), node, by: words.by }),
  fc.record({
    kind: fc.constant("label" as const),
    node,
    set: fc.dictionary(fc.constantFrom("rack", "zone"), fc.constantFrom("a", "b")),
    remove: fc.subarray(["rack", "zone"]),
    by: words.by,
  }),
  fc.record({ kind: fc.constant("forget_node" as const), node, by: words.by }),
  fc.record({ kind: fc.constant("pause" as const), model, ...words }),
  fc.record({ kind: fc.constant("resume" as const), model, by: words.by }),
  fc.record({ kind: fc.constant("scale" as const), model, replicas: fc.nat(4), ...words }),
  fc.record({ kind: fc.constant("clear_scale" as const), model, by: words.by }),
  fc.record({ kind: fc.constant("retry" as const), model, by: words.by }),
  fc.record({
    kind: fc.constantFrom("restart" as const, "stop" as const, "stop_at_once" as const),
    replica: fc.constantFrom("m-1-1", "m-1-2"),
    ...words,
  }),
  fc.record({
    kind: fc.constant("strike" as const),
    struck: fc.constantFrom("agent/n1", "serial/4f"),
    issuedBefore: fc.nat(9),
    ...words,
  }),
);

const at = (node: string) => ({ profile: "p", node, message: "", fingerprint: "", told: [] });

/** What a store that keeps these records has in the end. */
interface Stored {
  readonly known: Set<string>;
  readonly nodes: Map<string, unknown>;
  readonly paused: Map<string, unknown>;
  readonly scales: Map<string, unknown>;
  readonly labels: Map<string, unknown>;
  readonly replicas: Map<string, unknown>;
  readonly struck: Map<string, unknown>;
  readonly failures: Map<string, Failures>;
  audits: number;
}

function keep(stored: Stored, record: StoreRecord): void {
  const put = (map: Map<string, unknown>, subject: string, value: unknown) =>
    value === undefined ? map.delete(subject) : map.set(subject, value);
  switch (record.kind) {
    case "known_node":
      if (record.known) stored.known.add(record.node);
      else stored.known.delete(record.node);
      return;
    case "node_decision":
      put(stored.nodes, record.node, record.decision);
      return;
    case "paused":
      put(stored.paused, record.model, record.decision);
      return;
    case "scale":
      put(stored.scales, record.model, record.decision);
      return;
    case "labels":
      put(stored.labels, record.node, record.labels);
      return;
    case "replica_decision":
      put(stored.replicas, record.replica, record.decision);
      return;
    case "strike":
      put(stored.struck, record.struck, record.decision);
      return;
    case "failures":
      if (record.failures === undefined) stored.failures.delete(record.model);
      else stored.failures.set(record.model, record.failures);
      return;
    case "audit":
      stored.audits++;
      return;
    default:
      return;
  }
}

function sorted<V>(map: ReadonlyMap<string, V>): readonly (readonly [string, V])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

function agrees(stored: Stored, world: World): void {
  const kinds: readonly (keyof Decisions)[] = [
    "nodes",
    "paused",
    "scales",
    "labels",
    "replicas",
    "struck",
  ];
  for (const kind of kinds) deepEqual(sorted(stored[kind]), sorted<unknown>(world.decisions[kind]));
  deepEqual([...stored.known].sort(), [...world.knownNodes].sort());
  deepEqual(failureRecords(stored.failures, world.models), []);
}

Deno.test("storeRecords() keeps every operator's decision, as the world has it", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 20 }), (events) => {
      const failures = new Map([["m", {
        failedStarts: 1,
        blocked: [at("n1"), at("n2"), { profile: "q", message: "", fingerprint: "", told: [] }],
      }]]);
      const start = worldWith([modelOf({ name: "m" })], { n1: {}, n2: {} });
      let world: World = { ...start, models: failures };
      world = observe(world, { kind: "stream_closed", node: "n2" }, T0);
      const stored: Stored = {
        known: new Set(world.knownNodes),
        nodes: new Map(),
        paused: new Map(),
        scales: new Map(),
        labels: new Map(),
        replicas: new Map(),
        struck: new Map(),
        failures: new Map(failures),
        audits: 0,
      };
      let changes = 0;
      events.forEach((each, index) => {
        const next = observe(world, each, T0 + index);
        const records = storeRecords(world, next, each, T0 + index);
        if (next !== world) changes++;
        for (const record of records) keep(stored, record);
        world = next;
        agrees(stored, world);
      });
      // Whoever decided something is on record, and nothing else is.
      equal(stored.audits, changes);
      // A node that comes back finds what was decided about it.
      const back = observe(world, registered("n1"), T0 + 100);
      deepEqual(back.decisions, world.decisions);
    }),
    casesOf(1_000),
  );
});
