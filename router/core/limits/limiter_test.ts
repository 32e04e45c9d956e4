import assert from "node:assert/strict";
import type { Scope } from "../tenancy/scope.ts";
import { type Ask, type Lease, Limiter, type Tried } from "./limiter.ts";
import { fakeAsk, fakeKey, fakeScope } from "./limiter_fake.ts";
import { refusalOf, retryAfterS } from "./limit_refusal.ts";
import { durationText, rateHeaders } from "./rate_headers.ts";

function limiterOf(...scopes: readonly Scope[]): Limiter {
  const known = new Map(scopes.map((scope) => [scope.id, scope]));
  return new Limiter((id) => known.get(id));
}

function leaseOf(tried: Tried): Lease {
  if (tried.kind === "short") throw new Error(tried.shortages.map(({ limit }) => limit).join());
  return tried.lease;
}

function missing(tried: Tried): string {
  return tried.kind === "short"
    ? tried.shortages.map(({ limit, state }) => `${state.scope.id} ${limit}`).join(", ")
    : "nothing";
}

Deno.test("reserve() lets a key without limits pass", () => {
  const limiter = limiterOf();
  assert.equal(missing(limiter.reserve(fakeAsk(fakeKey("a", "b")), 0)), "nothing");
  assert.equal(limiter.states.size, 0);
});

Deno.test("reserve() holds every limit on the chain, and a refusal takes of none", () => {
  const limiter = limiterOf(
    fakeScope("org", { rpm: 100 }, "organisation"),
    fakeScope("team", { tpm: 1_000 }, "team"),
    fakeScope("project", { slots: 1 }, "project"),
    fakeScope("key", { rpm: 50 }),
  );
  const key = fakeKey("org", "team", "project", "key");
  const lease = leaseOf(limiter.reserve(fakeAsk(key), 0));
  for (let tries = 0; tries < 20; tries++) {
    assert.equal(missing(limiter.reserve(fakeAsk(key), 0)), "project concurrent_requests");
  }
  const left = () =>
    limiter.chain(key, 0).map(({ requests, tokens, slots }) =>
      [requests?.left(0), tokens?.left(0), slots?.left].filter((n) => n !== undefined)
    ).flat();
  assert.deepEqual(left(), [99, 990, 0, 49]);
  lease.end({ tokens: 4, costMicro: 0 }, 0);
  assert.deepEqual(left(), [99, 996, 1, 49]);
});

Deno.test("reserve() tells every limit that is missing", () => {
  const limiter = limiterOf(fakeScope("key", { rpm: 1, tpm: 10, slots: 1 }));
  const key = fakeKey("key");
  leaseOf(limiter.reserve(fakeAsk(key), 0));
  assert.equal(
    missing(limiter.reserve(fakeAsk(key), 0)),
    "key concurrent_requests, key requests_per_minute, key tokens_per_minute",
  );
});

Deno.test("reserve() admits a first request that is larger than the limit, and then none", () => {
  const limiter = limiterOf(fakeScope("key", { tpm: 100 }));
  const key = fakeKey("key");
  const lease = leaseOf(limiter.reserve(fakeAsk(key, { tokens: 131_072 }), 0));
  assert.equal(missing(limiter.reserve(fakeAsk(key, { tokens: 1 }), 0)), "key tokens_per_minute");
  lease.end({ tokens: 12, costMicro: 0 }, 0);
  assert.equal(missing(limiter.reserve(fakeAsk(key, { tokens: 88 }), 0)), "nothing");
});

Deno.test("what is beyond the reservation becomes debt", () => {
  const limiter = limiterOf(fakeScope("key", { tpm: 60 }));
  const key = fakeKey("key");
  leaseOf(limiter.reserve(fakeAsk(key), 0)).end({ tokens: 180, costMicro: 0 }, 0);
  const tried = limiter.reserve(fakeAsk(key, { tokens: 1 }), 0);
  assert.ok(tried.kind === "short");
  assert.equal(tried.shortages[0]?.waitMs, 121_000);
  assert.equal(refusalOf(tried.shortages).retryAfterS, 120);
});

Deno.test("a lease ends once, whatever is said of it later", () => {
  const limiter = limiterOf(fakeScope("key", { slots: 1, tpm: 100, budget: {} }));
  const key = fakeKey("key");
  const lease = leaseOf(limiter.reserve(fakeAsk(key), 0));
  lease.end({ tokens: 10, costMicro: 500 }, 0);
  lease.end({ tokens: 90, costMicro: 500 }, 0);
  const [state] = limiter.chain(key, 0);
  assert.equal(state?.slots?.used, 0);
  assert.equal(state?.tokens?.left(0), 90);
  assert.equal(state?.spentMicro(0), 500);
  assert.throws(() => lease.exchange({ tokens: 1, costMicro: 1 }, 0));
});

Deno.test("a spent budget stops what costs something, and nothing else", () => {
  const limiter = limiterOf(
    fakeScope("key", { budget: { limitMicro: 1_000, refillsAt: 7_200_000 } }),
  );
  const key = fakeKey("key");
  const ask = (costMicro: number | undefined) => limiter.reserve(fakeAsk(key, { costMicro }), 0);
  leaseOf(ask(100)).end({ tokens: 1, costMicro: 1_000 }, 0);
  const refused = ask(100);
  assert.equal(missing(refused), "key budget");
  assert.equal(missing(ask(undefined)), "nothing");
  assert.ok(refused.kind === "short");
  const refusal = refusalOf(refused.shortages);
  assert.equal(refusal.reason, "budget_exhausted");
  assert.equal(refusal.final, true);
  assert.equal(refusal.retryAfterS, undefined);
  assert.match(refusal.message, /key "key" is used up: it refills in 2 h 0 min/);
});

Deno.test("what is left of a budget can be reserved, and comes back", () => {
  const limiter = limiterOf(fakeScope("key", { budget: { limitMicro: 1_000 } }));
  const key = fakeKey("key");
  const first = leaseOf(limiter.reserve(fakeAsk(key, { costMicro: 5_000 }), 0));
  const second = limiter.reserve(fakeAsk(key), 0);
  assert.ok(second.kind === "short");
  assert.equal(refusalOf(second.shortages).reason, "budget_reserved");
  first.end({ tokens: 0, costMicro: 10 }, 0);
  assert.equal(missing(limiter.reserve(fakeAsk(key), 0)), "nothing");
});

Deno.test("a budget of nothing is used up from the start, and one that refills is full again", () => {
  const none = limiterOf(fakeScope("key", { budget: { limitMicro: 0 } }));
  assert.equal(missing(none.reserve(fakeAsk(fakeKey("key")), 0)), "key budget");
  const full = limiterOf(fakeScope("key", { budget: { spentMicro: 2_000_000, refillsAt: 1_000 } }));
  assert.equal(missing(full.reserve(fakeAsk(fakeKey("key")), 999)), "key budget");
  assert.equal(missing(full.reserve(fakeAsk(fakeKey("key")), 1_000)), "nothing");
});

Deno.test("spending counts once: here until control has it, then in what control says", () => {
  const scopes = new Map([["key", fakeScope("key", { budget: { spentMicro: 100 } })]]);
  const limiter = new Limiter((id) => scopes.get(id));
  const [state] = limiter.chain(fakeKey("key"), 0);
  leaseOf(limiter.reserve(fakeAsk(fakeKey("key")), 0)).end({ tokens: 1, costMicro: 50 }, 0);
  assert.equal(state?.spentMicro(0), 150);
  state?.recorded(50, 1_000);
  assert.equal(state?.spentMicro(1_000), 150);
  scopes.set("key", fakeScope("key", { budget: { spentMicro: 150 } }));
  limiter.changed("key", 2_000);
  assert.equal(state?.spentMicro(2_000), 150);
});

Deno.test("exchange() takes what another model needs, or leaves all as it was", () => {
  const limiter = limiterOf(fakeScope("key", { tpm: 100, slots: 1, budget: { spentMicro: 2e6 } }));
  const key = fakeKey("key");
  const lease = leaseOf(limiter.reserve(fakeAsk(key, { costMicro: undefined, tokens: 40 }), 0));
  const [state] = limiter.chain(key, 0);
  const names = (asked: Pick<Ask, "tokens" | "costMicro">) =>
    lease.exchange(asked, 0).map(({ limit }) => limit);
  assert.deepEqual(names({ tokens: 40, costMicro: 1 }), ["budget"]);
  assert.equal(state?.tokens?.left(0), 60);
  assert.deepEqual(names({ tokens: 90, costMicro: undefined }), []);
  assert.equal(state?.tokens?.left(0), 10);
  lease.end({ tokens: 0, costMicro: 0 }, 0);
  assert.equal(state?.tokens?.left(0), 100);
  assert.equal(state?.reservedMicro, 0);
});

Deno.test("changed() gives a scope in use its new limits and keeps what it has used", () => {
  const scopes = new Map([["key", fakeScope("key", { rpm: 10, slots: 2 })]]);
  const limiter = new Limiter((id) => scopes.get(id));
  const key = fakeKey("key");
  leaseOf(limiter.reserve(fakeAsk(key), 0));
  scopes.set("key", fakeScope("key", { rpm: 5, slots: 1 }));
  limiter.changed("key", 0);
  assert.equal(missing(limiter.reserve(fakeAsk(key), 0)), "key concurrent_requests");
  assert.equal(limiter.chain(key, 0)[0]?.requests?.left(0), 4);
  scopes.delete("key");
  limiter.changed("key", 0);
  assert.equal(missing(limiter.reserve(fakeAsk(key), 0)), "nothing");
});

Deno.test("sweep() forgets what is idle, and only that", () => {
  const limiter = limiterOf(fakeScope("key", { rpm: 10 }));
  const lease = leaseOf(limiter.reserve(fakeAsk(fakeKey("key")), 0));
  limiter.sweep(30_000);
  assert.equal(limiter.states.size, 1);
  lease.end({ tokens: 1, costMicro: 0 }, 30_000);
  limiter.sweep(90_000);
  assert.equal(limiter.states.size, 0);
});

Deno.test("sweep() leaves alone what a request waits for", () => {
  const limiter = limiterOf(fakeScope("key", { rpm: 10 }));
  limiter.share({ kind: "shared" });
  const tried = limiter.reserve(fakeAsk(fakeKey("key")), 0);
  assert.ok(tried.kind === "short");
  limiter.sweep(100);
  const state = limiter.states.get("key");
  assert.equal(state, tried.shortages[0]?.state);
});

Deno.test("retryAfterS() is a whole number from 1 to 120", () => {
  const cases = [[0, 1], [1, 1], [1_000, 1], [1_000.0001, 1], [1_001, 2], [59_999, 60], [
    60_000,
    60,
  ]];
  for (const [waitMs = 0, want] of [...cases, [1e9, 120], [Infinity, 120]]) {
    assert.equal(retryAfterS(waitMs), want, String(waitMs));
  }
});

Deno.test("rateHeaders() tell of the limit that is nearest to its end", () => {
  const limiter = limiterOf(
    fakeScope("org", { rpm: 100, tpm: 100_000 }, "organisation"),
    fakeScope("key", { rpm: 6 }),
  );
  const key = fakeKey("org", "key");
  assert.deepEqual(rateHeaders(limiter.chain(fakeKey("none"), 0), 0), {});
  leaseOf(limiter.reserve(fakeAsk(key, { tokens: 500 }), 0));
  assert.deepEqual(rateHeaders(limiter.chain(key, 0), 0), {
    "x-ratelimit-limit-requests": "6",
    "x-ratelimit-remaining-requests": "5",
    // All six pass again only when this one is no longer of the last minute.
    "x-ratelimit-reset-requests": "1m0s",
    "x-ratelimit-limit-tokens": "100000",
    "x-ratelimit-remaining-tokens": "99500",
    "x-ratelimit-reset-tokens": "300ms",
  });
});

Deno.test("durationText() writes durations as OpenAI does", () => {
  const cases: [number, string][] = [
    [0, "0ms"],
    [12, "12ms"],
    [1_000, "1s"],
    [1_500, "1.5s"],
    [60_000, "1m0s"],
    [360_000, "6m0s"],
    [3_723_000, "1h2m3s"],
  ];
  for (const [ms, text] of cases) assert.equal(durationText(ms), text);
});
