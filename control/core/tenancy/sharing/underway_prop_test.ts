/** Answers that are slow or lost: what was granted in them is neither used up by that nor there twice. */
import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { SharePool } from "./share_pool.ts";
import type { Call } from "./underway.ts";

const LIMIT = 60;
const MINUTE_MS = 60_000;
const EPSILON = 1e-6;

interface Answer {
  readonly id: number;
  readonly share: number;
  readonly credit: number;
}

/** A router that is told late, or never, what it was granted. */
class Router {
  share = 0;
  credit = 0;
  readonly admitted: number[] = [];
  #at = 0;
  #last = 0;
  #wanted = 0;
  #underway: Answer[] = [];
  #lost = new Set<number>();
  #vain = 0;

  constructor(readonly name: string) {}

  #refill(now: number): void {
    const filled = this.credit + this.share * (now - this.#at) / MINUTE_MS;
    this.credit = Math.max(this.credit, Math.min(filled, this.share));
    this.#at = now;
  }

  want(requests: number, now: number): void {
    this.#refill(now);
    this.#wanted = requests;
    for (let request = 0; request < requests && this.credit >= 1 - EPSILON; request++) {
      this.credit -= 1;
      this.admitted.push(now);
    }
  }

  /** Control answers at once, and the answer sets out. */
  ask(pool: SharePool, now: number): void {
    this.#refill(now);
    const kept = this.#wanted === 0 ? 0 : this.credit;
    const returned = this.credit - kept + this.#vain;
    this.credit = kept;
    this.#vain = 0;
    const id = ++this.#last;
    const call: Call = {
      id,
      inFlight: new Set(this.#underway.map((answer) => answer.id)),
      lost: new Set(this.#lost),
    };
    this.#lost.clear();
    const missing = Math.max(0, this.#wanted - this.credit);
    const demand = { wanted: this.#wanted * 60, held: this.share, credit: kept, returned, missing };
    this.#underway.push({ id, ...pool.ask(this.name, demand, now, call) });
  }

  arrive(now: number): void {
    this.#refill(now);
    for (const { share, credit } of this.#underway.splice(0)) {
      this.share = share;
      this.credit += credit;
    }
  }

  lose(): void {
    for (const { id } of this.#underway.splice(0)) this.#lost.add(id);
  }
}

Deno.test("SharePool gives again what was in an answer that never arrived", () => {
  const pool = new SharePool("rate", LIMIT, { saved: LIMIT, now: 0 });
  const router = new Router("a");
  for (let second = 0; second < 4; second++) {
    router.want(10, second * 1_000);
    router.ask(pool, second * 1_000);
    router.lose();
  }
  router.ask(pool, 4_000);
  router.arrive(4_000);
  router.want(100, 4_000);
  ok(router.admitted.length >= LIMIT - 5, `${router.admitted.length} of ${LIMIT} passed`);
});

Deno.test("SharePool takes what is on its way to a router for what it has, not for used", () => {
  const pool = new SharePool("rate", LIMIT, { saved: LIMIT, now: 0 });
  const router = new Router("a");
  for (let turn = 0; turn < 5; turn++) {
    router.want(10, turn * 50);
    router.ask(pool, turn * 50);
  }
  router.arrive(300);
  router.want(100, 300);
  ok(router.admitted.length >= LIMIT - 5, `${router.admitted.length} of ${LIMIT} passed`);
  ok(router.admitted.length <= LIMIT * 1.1, `${router.admitted.length} of ${LIMIT} passed`);
});

Deno.test("SharePool counts what a lost call gave back once", () => {
  const pool = new SharePool("rate", LIMIT, { saved: LIMIT, now: 0 });
  const demand = { wanted: 60, held: 0, credit: 0, returned: 0, missing: 60 };
  const none = new Set<number>();
  const first = pool.ask("a", demand, 0, { id: 1, inFlight: none, lost: none });
  equal(first.credit, LIMIT);
  const back = { wanted: 0, held: LIMIT, credit: 0, returned: LIMIT, missing: 0 };
  pool.ask("a", back, 10, { id: 2, inFlight: none, lost: none });
  const third = pool.ask("a", back, 20, { id: 3, inFlight: none, lost: new Set([2]) });
  const other = pool.ask("b", { ...demand, wanted: 600, missing: 200 }, 30, {
    id: 1,
    inFlight: none,
    lost: none,
  });
  const all = third.credit + other.credit;
  ok(all <= LIMIT + EPSILON && all > LIMIT - 1, `${all} of ${LIMIT} are there`);
});

Deno.test("SharePool keeps every minute within a tenth of the limit, whatever answers are slow or lost", () => {
  const turn = fc.record({
    wants: fc.array(fc.nat(4), { minLength: 3, maxLength: 3 }),
    fates: fc.array(fc.constantFrom("arrive", "arrive", "wait", "lose"), {
      minLength: 3,
      maxLength: 3,
    }),
  });
  fc.assert(
    fc.property(fc.array(turn, { minLength: 150, maxLength: 200 }), (turns) => {
      const pool = new SharePool("rate", LIMIT, { saved: LIMIT, now: 0 });
      const routers = ["a", "b", "c"].map((name) => new Router(name));
      for (const [second, { wants, fates }] of turns.entries()) {
        for (const [index, router] of routers.entries()) {
          const now = second * 1_000 + index * 300;
          if (fates[index] === "arrive") router.arrive(now);
          if (fates[index] === "lose") router.lose();
          router.want(wants[index] ?? 0, now);
          router.ask(pool, now + 100);
        }
      }
      const all = routers.flatMap(({ admitted }) => admitted).sort((a, b) => a - b);
      let first = 0;
      for (const [last, at] of all.entries()) {
        while ((all[first] ?? 0) <= at - MINUTE_MS) first++;
        ok(last - first + 1 <= LIMIT * 1.1 + 1, `${last - first + 1} in a minute`);
      }
    }),
    { numRuns: 60 },
  );
});
