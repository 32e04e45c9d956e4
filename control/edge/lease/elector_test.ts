import { deepEqual, equal, rejects } from "node:assert/strict";
import { HeddleError } from "@heddle/proto/error";
import type { Claim, ClaimAnswer } from "../../core/lease/claim.ts";
import { Elector } from "./elector.ts";

const LEASE_MS = 10_000;
const CLAIM: Claim = { holder: "h", name: "a", address: "a:1", leaseMs: LEASE_MS };
const B = { name: "b", address: "b:1", term: 7 };
const held: ClaimAnswer = { kind: "held", by: B, remainingMs: 4_000 };
const granted = (epoch: number): ClaimAnswer => ({
  kind: "granted",
  epoch,
  term: epoch + 10,
  validMs: LEASE_MS,
});

/** An elector whose store answers what the test says, on a clock that the test moves. */
function bench() {
  let now = 0;
  let next: ClaimAnswer | HeddleError = held;
  const events: string[] = [];
  const elector = new Elector({
    store: {
      claim(claim) {
        deepEqual(claim, CLAIM);
        return next instanceof HeddleError ? Promise.reject(next) : Promise.resolve(next);
      },
      release: () => Promise.resolve(void events.push("released")),
    },
    claim: CLAIM,
    clock: { now: () => now },
    onWon: (term) => void events.push(`won ${term}`),
    onLost: (by) => void events.push(`lost to ${by?.name}`),
  });
  return {
    elector,
    events,
    pass: (ms: number) => void (now += ms),
    claim(answer: ClaimAnswer | HeddleError) {
      next = answer;
      return elector.claim();
    },
  };
}

const away = new HeddleError("system", "no answer");

Deno.test("Elector stands by and knows who leads, then wins, then loses", async () => {
  const { elector, events, claim } = bench();
  await claim(held);
  deepEqual(elector.standing, { leading: false, sure: false, leader: B, away: undefined });
  await claim(granted(1));
  deepEqual(elector.standing, { leading: true, sure: true, leader: undefined, away: undefined });
  await claim(granted(1));
  await claim(held);
  deepEqual(events, ["won 11", "lost to b"]);
  equal(elector.sure(), false);
});

Deno.test("Elector is unsure once its lease may have ended, and goes on when the store says so", async () => {
  const { elector, events, pass, claim } = bench();
  await claim(granted(1));
  pass(8_999);
  equal(elector.sure(), true);
  await claim(away);
  equal(elector.sure(), true, "one lost answer changes nothing");
  pass(1);
  deepEqual(elector.standing, { leading: true, sure: false, leader: undefined, away: "no answer" });
  await claim(granted(1));
  deepEqual(elector.standing, { leading: true, sure: true, leader: undefined, away: undefined });
  deepEqual(events, ["won 11"]);
});

Deno.test("Elector ends one time of leading before it begins another", async () => {
  const { events, claim } = bench();
  await claim(granted(1));
  await claim(granted(3));
  deepEqual(events, ["won 11", "lost to undefined", "won 13"]);
});

Deno.test("Elector gives the lease back when it resigns, and not when it has none", async () => {
  const { elector, events, claim } = bench();
  await elector.resign();
  await claim(granted(1));
  await elector.resign();
  await elector.resign();
  deepEqual(events, ["won 11", "lost to undefined", "released"]);
  equal(elector.sure(), false);
});

Deno.test("Elector ends with a store that this version can never use", async () => {
  const { elector, claim } = bench();
  await rejects(claim(new HeddleError("failed_precondition", "its schema is 99")), /schema is 99/);
  await rejects(elector.run(new AbortController().signal), /schema is 99/);
});

Deno.test("Elector claims until it is told to stop", async () => {
  const { elector, events, claim } = bench();
  await claim(granted(1));
  const stop = new AbortController();
  const running = elector.run(stop.signal);
  stop.abort();
  await running;
  deepEqual(events, ["won 11"]);
});
