import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { decodeRevision } from "@heddle/proto/revision";
import type { Published, RemovalReason } from "../../core/published.ts";
import { CHUNK_ITEMS, deltaOf, snapshotOf } from "./delta.ts";
import { encodeOnce } from "./encoded.ts";
import { endpoint, FakeRouter, model, NOTHING } from "./publication_fake.ts";

const REASON_NUMBERS: Record<RemovalReason, number> = { stopped: 1, failed: 2, lost: 3 };
const ids = ["r0", "r1", "r2", "r3"];

/** What becomes of each replica and model in one step. */
const step = fc.record({
  replicas: fc.array(
    fc.constantFrom("same", "same", "endpoint", "forgotten", "stopped", "failed", "lost"),
    { minLength: ids.length, maxLength: ids.length },
  ),
  models: fc.array(fc.constantFrom("same", "changed", "gone"), {
    minLength: ids.length,
    maxLength: ids.length,
  }),
  settledNodes: fc.subarray(["n0", "n1", "n2"]),
  settled: fc.boolean(),
});

function next(before: Published, change: typeof step extends fc.Arbitrary<infer T> ? T : never) {
  const endpoints = new Map(before.endpoints);
  const removed = new Map(before.removed);
  const models = new Map(before.models);
  const sequence = before.revision.sequence + 1;
  for (const [index, id] of ids.entries()) {
    const what = change.replicas[index];
    if (what !== "same") {
      endpoints.delete(id);
      removed.delete(id);
    }
    if (what === "endpoint") endpoints.set(id, endpoint(id, sequence));
    if (what === "stopped" || what === "failed" || what === "lost") removed.set(id, what);
    if (change.models[index] === "changed") models.set(id, model(id, `at ${sequence}`));
    if (change.models[index] === "gone") models.delete(id);
  }
  const published: Published = {
    revision: { term: 1, sequence },
    models,
    endpoints,
    removed,
    settledNodes: [...new Set([...before.settledNodes, ...change.settledNodes])].sort(),
    settled: before.settled || change.settled,
  };
  return published;
}

function agrees(router: FakeRouter, published: Published): void {
  deepEqual(router.revision, published.revision);
  deepEqual(router.models, published.models);
  deepEqual(router.endpoints, published.endpoints);
  deepEqual([...router.settledNodes].sort(), published.settledNodes);
  equal(router.settled, published.settled);
}

Deno.test("deltaOf() brings a router that has the older publication to the newer one", () => {
  fc.assert(fc.property(
    fc.array(step, { minLength: 1, maxLength: 8 }),
    fc.nat(7),
    (steps, joinAt) => {
      let published = NOTHING;
      const first = new FakeRouter();
      snapshotOf(published).map(encodeOnce).forEach((message) => first.receive(message));
      const late = new FakeRouter();
      for (const [index, change] of steps.entries()) {
        if (index === joinAt % steps.length) {
          snapshotOf(published).forEach((message) => late.receive(message));
        }
        const newer = next(published, change);
        const watched = new Set(first.endpoints.keys());
        const before = first.removals.length;
        for (const message of deltaOf(published, newer).map(encodeOnce)) {
          first.receive(message);
          if (index >= joinAt % steps.length) late.receive(message);
        }
        const said = new Map(first.removals.slice(before));
        for (const id of watched) {
          if (newer.endpoints.has(id)) continue;
          equal(said.get(id), REASON_NUMBERS[newer.removed.get(id) ?? "stopped"], id);
        }
        agrees(first, newer);
        published = newer;
      }
      agrees(late, published);
    },
  ));
});

Deno.test("deltaOf() says nothing about a publication that is the same", () => {
  fc.assert(fc.property(step, (change) => {
    const published = next(NOTHING, change);
    deepEqual(deltaOf(published, published), []);
    deepEqual(deltaOf(published, { ...published }), []);
  }));
});

Deno.test("deltaOf() says that a replica is gone though it never was an endpoint of this control", () => {
  const router = new FakeRouter();
  const failed: Published = { ...NOTHING, removed: new Map([["r0", "failed"]]) };
  deltaOf(NOTHING, failed).forEach((message) => router.receive(message));
  deepEqual(router.removals, [["r0", REASON_NUMBERS.failed]]);
});

Deno.test("chunks are bounded, and only the last one carries the new revision of a delta", () => {
  const count = 2 * CHUNK_ITEMS + 1;
  const names = Array.from({ length: count }, (_, index) => `r${index}`);
  const published: Published = {
    ...NOTHING,
    revision: { term: 1, sequence: 7 },
    models: new Map(names.map((name) => [name, model(name)])),
    endpoints: new Map(names.map((name) => [name, endpoint(name)])),
    removed: new Map([["x", "lost"]]),
  };
  const delta = deltaOf(NOTHING, published);
  equal(delta.length, 6);
  deepEqual(delta.map((message) => decodeRevision(message.revision).sequence), [0, 0, 0, 0, 0, 7]);
  const snapshot = snapshotOf(published);
  deepEqual(snapshot.map(({ snapshotEnd }) => snapshotEnd), [
    false,
    false,
    false,
    false,
    false,
    true,
  ]);
  for (const message of [...delta, ...snapshot]) {
    equal(message.models.length + message.endpoints.length <= CHUNK_ITEMS, true);
  }
  for (const messages of [delta, snapshot]) {
    const router = new FakeRouter();
    messages.map(encodeOnce).forEach((message) => router.receive(message));
    agrees(router, published);
  }
});
