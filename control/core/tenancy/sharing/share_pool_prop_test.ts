import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { type Grant, SHARE_VALID_MS, SharePool } from "./share_pool.ts";

const MINUTE_MS = 60_000;
const EPSILON = 1e-6;

/** A router that keeps to what it was given: never above its share, never beyond its credit. */
class Router {
  share = 0;
  credit = 0;
  admitted: number[] = [];
  #at = 0;
  #asked = 0;

  refill(now: number): void {
    const filled = this.credit + this.share * (now - this.#at) / MINUTE_MS;
    this.credit = Math.max(this.credit, Math.min(filled, this.share));
    this.#at = now;
  }

  /** One request; refused when it does not fit, after asking. */
  want(pool: SharePool, name: string, now: number): boolean {
    this.refill(now);
    this.#asked++;
    if (this.credit < 1) this.ask(pool, name, now, 1 - this.credit);
    return this.#take(now);
  }

  /** One request, from what it has: control is slow to answer. */
  wantAlone(now: number): boolean {
    this.refill(now);
    this.#asked++;
    return this.#take(now);
  }

  #take(now: number): boolean {
    if (this.credit < 1 - EPSILON) return false;
    this.credit -= 1;
    this.admitted.push(now);
    return true;
  }

  /** Gives back what it did not use, as an idle router does. */
  ask(pool: SharePool, name: string, now: number, missing = 0): Grant {
    this.refill(now);
    const kept = this.#asked === 0 ? 0 : this.credit;
    const grant = pool.ask(name, {
      wanted: this.#asked * 60,
      held: this.share,
      credit: kept,
      returned: this.credit - kept,
      missing,
      used: this.admitted.length,
    }, now);
    this.credit = kept + grant.credit;
    this.share = grant.share;
    return grant;
  }

  /** Of what it has, as much as it was asked for in this second. */
  get needed(): number {
    return Math.min(this.credit, this.#asked);
  }

  /** Control wants back what is not needed. */
  recalled(pool: SharePool, name: string, now: number): void {
    this.refill(now);
    const wanted = this.#asked * 60;
    this.share = Math.min(this.share, wanted);
    const kept = this.needed;
    const grant = pool.ask(name, {
      wanted,
      held: this.share,
      credit: kept,
      returned: this.credit - kept,
      missing: 0,
      used: this.admitted.length,
    }, now);
    this.credit = kept + grant.credit;
    this.share = grant.share;
  }

  second(pool: SharePool, name: string, now: number): void {
    this.ask(pool, name, now);
    this.#asked = 0;
  }
}

Deno.test("SharePool lets routers admit a limit and a tenth in any minute after the first burst", () => {
  const load = fc.array(fc.array(fc.nat(8), { minLength: 3, maxLength: 3 }), {
    minLength: 200,
    maxLength: 260,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), load, (limit, seconds) => {
      const pool = new SharePool("rate", limit, { saved: limit, now: 0 });
      const routers = ["a", "b", "c"].map((name) => ({ name, router: new Router() }));
      for (const [second, wants] of seconds.entries()) {
        for (const [index, { name, router }] of routers.entries()) {
          const now = second * 1_000 + index * 300;
          for (let request = 0; request < (wants[index] ?? 0); request++) {
            router.want(pool, name, now);
          }
          router.second(pool, name, now + 200);
        }
        const held = routers.reduce((sum, { router }) => sum + router.share, 0);
        ok(held <= limit + EPSILON, `${held} of ${limit} per minute are held`);
      }
      const all = routers.flatMap(({ router }) => router.admitted).sort((x, y) => x - y);
      // A cell rate lets the burst and what refills through, over any time: no more was ever made.
      for (const [index, from] of all.entries()) {
        const last = all.length - 1;
        const span = ((all[last] ?? 0) - from) / MINUTE_MS;
        ok(last - index + 1 <= limit * (1 + span) * 1.1 + 1, `${last - index + 1} in ${span} min`);
      }
    }),
    { numRuns: 30 },
  );
});

Deno.test("SharePool keeps any minute within a tenth of the limit, though routers ask up to three seconds late", () => {
  const steps = fc.array(
    fc.record({
      router: fc.nat(2),
      elapsed: fc.nat(600),
      wants: fc.nat(12),
      late: fc.nat(3_000),
      asks: fc.boolean(),
    }),
    { minLength: 200, maxLength: 400 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), steps, (limit, steps) => {
      const pool = new SharePool("rate", limit, { saved: limit, now: 0 });
      const routers = ["a", "b", "c"].map((name) => ({ name, router: new Router(), due: 0 }));
      let now = 0;
      for (const { router: turn, elapsed, wants, late, asks } of steps) {
        const until = now + elapsed;
        for (const each of [...routers].sort((x, y) => x.due - y.due)) {
          if (each.due > until) continue;
          now = Math.max(now, each.due);
          each.router.second(pool, each.name, now);
          each.due = now + 1_000 + late;
        }
        now = until;
        const chosen = routers[turn];
        for (let request = 0; request < wants; request++) {
          if (asks) chosen?.router.want(pool, chosen.name, now);
          else chosen?.router.wantAlone(now);
        }
      }
      const all = routers.flatMap(({ router }) => router.admitted).sort((x, y) => x - y);
      let first = 0;
      for (const [index, at] of all.entries()) {
        while ((all[first] ?? at) <= at - MINUTE_MS) first++;
        const passed = index - first + 1;
        ok(passed <= 1.1 * limit + EPSILON, `${passed} of ${limit} in the minute before ${at} ms`);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("SharePool has nobody refused while others hold what they do not use", () => {
  const steps = fc.array(
    fc.record({ router: fc.nat(2), wants: fc.nat(30), seconds: fc.nat(8) }),
    { minLength: 20, maxLength: 80 },
  );
  fc.assert(fc.property(fc.integer({ min: 1, max: 200 }), steps, (limit, steps) => {
    const pool = new SharePool("rate", limit, { saved: limit, now: 0 });
    const routers = new Map(["a", "b", "c"].map((name) => [name, new Router()]));
    let now = 0;
    for (const { router: turn, wants, seconds } of steps) {
      const [name, router] = [...routers][turn] ?? [];
      if (name === undefined || router === undefined) return;
      for (let request = 0; request < wants; request++) {
        if (router.want(pool, name, now)) continue;
        for (const other of router.ask(pool, name, now, 1 - router.credit).idleAt) {
          routers.get(other)?.recalled(pool, other, now);
        }
        if (router.want(pool, name, now)) continue;
        // Control hears of it a second later, and so forgets it then.
        const passed = [...routers.values()].flatMap(({ admitted }) => admitted)
          .filter((at) => at >= now - MINUTE_MS - 1_000).length;
        const kept = [...routers.values()].reduce((sum, router) => sum + router.needed, 0);
        ok(
          passed + kept >= 0.9 * limit - 1,
          `refused though ${passed} of ${limit} passed in the minute, and ${kept} are kept for the next second`,
        );
      }
      for (let second = 0; second < seconds; second++) {
        now += 1_000;
        for (const [each, router] of routers) router.second(pool, each, now);
      }
    }
  }));
});

Deno.test("SharePool says when the last minute has room for what is missing, and then there is", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.array(fc.nat(4_000), { minLength: 12, maxLength: 12 }),
      (limit, pauses) => {
        const pool = new SharePool("rate", limit, { saved: limit, now: 0 });
        const router = new Router();
        let now = 0;
        for (const pause of pauses.slice(0, limit)) {
          ok(router.want(pool, "a", now), "what was never used passes");
          now += pause;
        }
        router.refill(now);
        const { roomInMs } = router.ask(pool, "a", now, Math.max(0, 1 - router.credit));
        if (router.credit >= 1 - EPSILON) return;
        const then = now + Math.ceil(roomInMs);
        for (let at = now + 1_000; at < then; at += 1_000) router.second(pool, "a", at);
        const others = then > now ? "later" : "at once";
        ok(router.want(pool, "a", then), `there was to be room ${others}, at ${then} ms`);
      },
    ),
  );
});

Deno.test("SharePool lets a router alone with its load have the whole limit", () => {
  const pool = new SharePool("rate", 60, { saved: 60, now: 0 });
  const [busy, ...idle] = ["a", "b", "c"].map((name) => ({ name, router: new Router() }));
  for (const { name, router } of [...idle]) router.second(pool, name, 0);
  let admitted = 0;
  for (let now = 1_000; now <= 121_000; now += 1_000) {
    for (let request = 0; request < 5; request++) {
      if (busy?.router.want(pool, "a", now) === true) admitted++;
    }
    busy?.router.second(pool, "a", now + 500);
    for (const { name, router } of idle) router.second(pool, name, now + 600);
  }
  // A minute's worth at once is a minute's worth: the burst that opens a minute is all there is in it.
  ok(admitted >= 0.97 * 120 && admitted <= 1.1 * 120 + 5, `${admitted}`);
});

Deno.test("SharePool never has more slots out than there are, whoever asks, leaves or is cut off", () => {
  const step = fc.record({
    router: fc.nat(2),
    uses: fc.nat(15),
    keeps: fc.boolean(),
    elapsed: fc.nat(3_000),
    leaves: fc.boolean(),
  });
  fc.assert(fc.property(fc.nat(20), fc.array(step, { maxLength: 60 }), (limit, steps) => {
    const pool = new SharePool("slots", limit, { saved: 0, now: 0 });
    const held = new Map<string, { slots: number; until: number }>();
    let now = 0;
    for (const { router, uses, keeps, elapsed, leaves } of steps) {
      now += elapsed;
      const name = `r${router}`;
      for (const [each, { until }] of held) if (until <= now) held.delete(each);
      if (leaves) {
        pool.drop(name, now);
        held.delete(name);
      } else {
        const before = held.get(name)?.slots ?? 0;
        const mine = keeps ? before : Math.min(before, uses);
        const demand = { wanted: uses, held: mine, credit: 0, returned: 0, missing: 0 };
        const { share } = pool.ask(name, demand, now);
        ok(Number.isSafeInteger(share) && share >= 0);
        held.set(name, { slots: Math.max(mine, share), until: now + SHARE_VALID_MS });
      }
      const out = [...held.values()].reduce((sum, { slots }) => sum + slots, 0);
      ok(out <= limit, `${out} of ${limit} slots`);
    }
  }));
});

Deno.test("SharePool says who has what another needs, and passes it on once it is given back", () => {
  const pool = new SharePool("slots", 10, { saved: 0, now: 0 });
  const ask = (router: string, wanted: number, held: number) =>
    pool.ask(router, { wanted, held, credit: 0, returned: 0, missing: 0 }, 0);
  equal(ask("a", 0, 0).share, 10);
  equal(ask("b", 4, 0).share, 0);
  deepEqual(ask("b", 4, 0).idleAt, ["a"]);
  // Told to live by less, it does; then the rest is free.
  equal(ask("a", 0, 0).share, 3);
  equal(ask("b", 4, 0).share, 7);
  equal(ask("a", 0, 3).share, 3);
});
