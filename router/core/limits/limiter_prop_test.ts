import assert from "node:assert/strict";
import fc from "fast-check";
import type { Scope } from "../tenancy/scope.ts";
import { type Lease, Limiter } from "./limiter.ts";
import { fakeAsk, fakeKey, fakeScope } from "./limiter_fake.ts";

const SCOPE = fc.record({
  rpm: fc.integer({ min: 1, max: 50 }),
  tpm: fc.integer({ min: 1, max: 5_000 }),
  slots: fc.integer({ min: 0, max: 5 }),
  budget: fc.record({ limitMicro: fc.integer({ min: 0, max: 10_000 }) }),
}, { requiredKeys: [] });

const STEP = fc.oneof(
  fc.record({ do: fc.constant("ask" as const), key: fc.nat(2), tokens: fc.nat(3_000) }),
  fc.record({
    do: fc.constantFrom("end" as const, "end twice" as const, "exchange" as const),
    which: fc.nat(20),
    tokens: fc.nat(9_000),
  }),
  fc.record({ do: fc.constant("wait" as const), ms: fc.nat(40_000) }),
);

/** A scope's books, kept again in the plainest way. */
function check(limiter: Limiter, held: readonly { key: number; lease: Lease }[], now: number) {
  for (const [id, { slots, reservedMicro, requests, tokens }] of limiter.states) {
    const on = held.filter(({ key }) => KEYS[key]?.scopeIds.includes(id)).length;
    if (slots !== undefined) {
      assert.equal(slots.used, on, id);
      assert.ok(slots.used <= slots.limit && slots.left >= 0);
    }
    assert.ok(reservedMicro >= 0);
    if (on === 0) assert.equal(reservedMicro, 0);
    if (requests !== undefined) {
      assert.ok(requests.left(now) >= 0 && requests.left(now) <= requests.limit);
    }
    if (tokens !== undefined) assert.ok(tokens.left(now) >= 0 && tokens.left(now) <= tokens.limit);
  }
  assert.ok(limiter.reservedTokens >= 0);
  if (held.length === 0) assert.equal(limiter.reservedTokens, 0);
}

const KEYS = [fakeKey("org", "a"), fakeKey("org", "b"), fakeKey("b")];

Deno.test("slots and reservations are never negative, never beyond, and zero when idle", () => {
  fc.assert(fc.property(
    fc.record({ org: SCOPE, a: SCOPE, b: SCOPE }),
    fc.array(STEP, { maxLength: 80 }),
    (limits, steps) => {
      const scopes = new Map<string, Scope>(
        Object.entries(limits).map(([id, each]) => [id, fakeScope(id, withoutNothing(each))]),
      );
      const limiter = new Limiter((id) => scopes.get(id));
      const held: { key: number; lease: Lease }[] = [];
      let now = 0;
      for (const step of steps) {
        if (step.do === "wait") now += step.ms;
        else if (step.do === "ask") {
          const tried = limiter.reserve(
            fakeAsk(KEYS[step.key] ?? fakeKey(), { tokens: step.tokens, costMicro: step.tokens }),
            now,
          );
          if (tried.kind === "reserved") held.push({ key: step.key, lease: tried.lease });
        } else {
          const at = held.length === 0 ? -1 : step.which % held.length;
          const chosen = held[at];
          if (chosen === undefined) continue;
          const used = { tokens: step.tokens, costMicro: step.tokens };
          if (step.do === "exchange") chosen.lease.exchange(used, now);
          else {
            chosen.lease.end(used, now);
            if (step.do === "end twice") chosen.lease.end(used, now);
            held.splice(at, 1);
          }
        }
        check(limiter, held, now);
      }
      for (const { lease } of held.splice(0)) lease.end({ tokens: 0, costMicro: 0 }, now);
      check(limiter, held, now);
    },
  ));
});

Deno.test("a refusal takes nothing: the same is missing however often it is asked", () => {
  fc.assert(fc.property(SCOPE, fc.nat(6_000), fc.nat(8), (limits, tokens, others) => {
    const scope = fakeScope("a", withoutNothing(limits));
    const limiter = new Limiter(() => scope);
    for (let n = 0; n < others; n++) limiter.reserve(fakeAsk(fakeKey("a")), 0);
    const ask = () => limiter.reserve(fakeAsk(fakeKey("a"), { tokens }), 0);
    const first = ask();
    if (first.kind === "reserved") return;
    for (let n = 0; n < 5; n++) assert.deepEqual(ask(), first);
  }));
});

function withoutNothing<T extends object>(limits: T): T {
  return JSON.parse(JSON.stringify(limits));
}
