import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import type { ShardEvent } from "./event.ts";
import { begin, step, TRANSITIONS, wakeAt } from "./lifecycle.ts";
import { decodeDocument, encodeDocument } from "./document.ts";
import { ended, handlesOf, type Shard, type StateKind } from "./shard.ts";
import { aShard, aSpec, PROCESS } from "./shard_fake.ts";
import { HUNG_FAILED_MS } from "./timing.ts";

const KINDS = [
  "preparing",
  "starting",
  "loading",
  "ready",
  "degraded",
  "draining",
  "stopping",
  "stopped",
  "failed",
] as const satisfies readonly StateKind[];

const failure = { reason: "system_error", message: "m", permanent: false, logTail: [] };
const process = fc.constantFrom(PROCESS, { ...PROCESS, handle: "h2", pid: 200 });
const processes = fc.uniqueArray(process, { maxLength: 2, selector: ({ handle }) => handle });
const some = processes.filter(({ length }) => length > 0);

const event: fc.Arbitrary<ShardEvent> = fc.oneof(
  some.map((planned) =>
    ({
      type: "prepared",
      processes: planned.map(({ name, handle }) => ({ name, handle })),
    }) as const
  ),
  fc.constant({ type: "prepare_failed", failure } as const),
  some.map((launched) => ({ type: "launched", processes: launched }) as const),
  processes.map((launched) => ({ type: "launch_failed", processes: launched, failure }) as const),
  fc.constantFrom("h1", "h2", "h3").map((handle) =>
    ({ type: "exited", handle, logTail: ["x"] }) as const
  ),
  fc.constantFrom(
    { type: "probed", outcome: { kind: "ready", maxModelLen: 4 } } as const,
    { type: "probed", outcome: { kind: "waiting", why: "w" } } as const,
    { type: "probed", outcome: { kind: "wrong", reason: "no_token", why: "w" } } as const,
  ),
  fc.record({
    outcome: fc.constantFrom(
      { kind: "ready" } as const,
      { kind: "waiting", why: "w" } as const,
      { kind: "wrong", reason: "no_token", why: "w" } as const,
    ),
    load: fc.record({ running: fc.nat(1), progress: fc.nat(1) }, { requiredKeys: [] }),
  }).map((probed) => ({ type: "probed", ...probed }) as const),
  fc.record({ running: fc.nat(1), waiting: fc.nat(1) }).map((load) =>
    ({ type: "measured", load }) as const
  ),
  fc.subarray([100, 200]).map((pids) => ({ type: "counted", pids }) as const),
  fc.constantFrom(
    { type: "gpus_checked" } as const,
    { type: "gpus_checked", unreleased: [] } as const,
    {
      type: "gpus_checked",
      unreleased: [{ uuid: "GPU-a", index: 0, usedMib: 70_000, holders: [] }],
    } as const,
  ),
  fc.constantFrom(0, 5_000).map((graceMs) =>
    ({
      type: "stop",
      revision: { term: 2, sequence: 1 },
      reason: "drained",
      graceMs,
    }) as const
  ),
  fc.constantFrom(
    { type: "links_judged" } as const,
    { type: "links_judged", fault: { reason: "nvlink_lost", message: "m" } } as const,
    { type: "links_judged", fault: { reason: "hca_link_down", message: "m" } } as const,
  ),
  fc.constant({ type: "tick" } as const),
  processes.map((live) => ({ type: "resumed", live, adoptReadyMs: 60_000 }) as const),
);

const history = fc.array(fc.tuple(event, fc.nat(40_000)), { maxLength: 40 });
const anyShard = fc.tuple(
  fc.constantFrom(...KINDS),
  fc.constantFrom(0, 1),
  fc.constantFrom([], [{ index: 0, uuid: "GPU-a" }]),
).map(([kind, rank, gpus]) => aShard(kind, { spec: { rank, shardCount: 2, gpus: [...gpus] } }));

/** Every step of a history, with the time at which it was taken. */
function* steps(first: Shard, events: readonly (readonly [ShardEvent, number])[]) {
  let before = first;
  let now = 0;
  for (const [each, passed] of events) {
    now += passed;
    const { shard, effects } = step(before, each, now);
    yield { before, event: each, shard, effects, now };
    before = shard;
  }
}

Deno.test("step() takes only ways that the table has", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      for (const { before, shard } of steps(first, events)) {
        const [from, to] = [before.state.kind, shard.state.kind];
        ok(from === to || TRANSITIONS[from].includes(to), `${from} → ${to}`);
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("step() ends a shard only when nothing of it was counted, or nothing was started", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      for (const { before, event: each, shard } of steps(first, events)) {
        if (!ended(shard.state) || ended(before.state)) continue;
        // GPUs are waited for only once nothing of it was counted.
        const waited = before.state.kind === "stopping" && before.state.freeBy !== undefined;
        const counted = (each.type === "counted" && each.pids.length === 0) || waited;
        const none = !("processes" in before.state) || before.state.processes.length === 0;
        ok(counted || none, `${before.state.kind} ended by ${each.type}`);
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("step() never forgets a process that it does not know to be gone", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      for (const { before, shard } of steps(first, events)) {
        if (ended(shard.state) || !("processes" in before.state)) continue;
        const left = new Set(handlesOf(shard.state));
        for (const { handle } of before.state.processes) ok(left.has(handle), handle);
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("step() kills only what has failed, was told to stop, or never became ready", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      for (const { before, event: each, effects, now } of steps(first, events)) {
        const ends = effects.some(({ type }) => type === "kill" || type === "terminate");
        if (!ends || !["ready", "degraded"].includes(before.state.kind)) continue;
        if (each.type === "exited" || each.type === "stop") continue;
        // Or has given no token for longer than any engine needs to give up by itself.
        ok(before.state.kind === "degraded" && before.state.hungSince !== undefined, each.type);
        ok(now - before.state.hungSince >= HUNG_FAILED_MS);
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("step() never calls an engine hung of which nothing was read", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      let read = false;
      for (const { event: each, shard } of steps(first, events)) {
        read ||= each.type === "probed" && each.load?.running !== undefined;
        if (shard.state.kind === "degraded") ok(read || shard.state.hungSince === undefined);
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("ticks alone never stand still: each moves the next one on", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      let shard = first;
      for (const each of steps(first, events)) shard = each.shard;
      let last = -1;
      for (let count = 0; count < 20; count++) {
        const at = wakeAt(shard);
        if (at === undefined) return;
        const now = Math.max(at, last);
        shard = step(shard, { type: "tick" }, now).shard;
        const next = wakeAt(shard);
        ok(next === undefined || next > now, `${shard.state.kind} wakes at ${next} again`);
        last = now;
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("decodeDocument() reads what encodeDocument() wrote, in every state", () => {
  fc.assert(
    fc.property(anyShard, history, (first, events) => {
      for (const { shard } of [{ shard: first }, ...steps(first, events)]) {
        const text = encodeDocument(shard, ({ shardId }) => ({ shardId }));
        const decoded = decodeDocument(text, () => shard.spec);
        ok(decoded.kind === "shard");
        deepEqual(decoded.shard, shard);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("begin() gives the shard the time that its spec says", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 4e9 }), fc.nat(), (limitMs, now) => {
    const spec = aSpec({ startupTimeoutMs: limitMs });
    const { shard } = begin({ spec, revision: { term: 1, sequence: 1 }, apiKey: "" }, now);
    equal(wakeAt(shard), now + limitMs);
  }));
});
