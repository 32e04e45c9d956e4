/**
 * Several controls and one store, in simulated time. Clocks start anywhere and run at different
 * speeds, messages are late or lost in both directions, processes stand still, the store goes away.
 * Whatever happens, no two controls are sure at once, and no epoch or term is given twice.
 */
import { deepEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { type ClaimAnswer, type Held, judgeClaim } from "./claim.ts";
import { answered, type Election, startElection, sure, unanswered } from "./election.ts";

const LEASE_MS = 10_000;
/** A client gives up on a claim after this much of its own time. */
const CLAIM_MS_MAX = 3_000;
const STEP_MS = 50;

/** The store: one row and a clock of its own. */
class Store {
  holder = "";
  epoch = 0;
  term = 0;
  writes = 0;
  endsAt = 0;

  claim(mine: Held, now: number): ClaimAnswer {
    const row = {
      holder: this.holder,
      epoch: this.epoch,
      writes: this.writes,
      remainingMs: this.endsAt - now,
    };
    const verdict = judgeClaim(row, mine);
    if (verdict === "held") {
      const by = { name: this.holder, address: "", term: this.term };
      return { kind: "held", by, remainingMs: row.remainingMs };
    }
    if (verdict === "take") {
      this.holder = mine.holder;
      this.epoch++;
      this.term++;
      this.writes = 0;
    }
    this.endsAt = now + LEASE_MS;
    return { kind: "granted", epoch: this.epoch, term: this.term, validMs: LEASE_MS };
  }
}

interface Pending {
  readonly sentAt: number;
  readonly mine: Held;
  /** In true time; undefined when lost. */
  readonly arrivesAt: number | undefined;
  readonly replyTakesMs: number | undefined;
  answer?: { readonly at: number; readonly value: ClaimAnswer };
}

class Contender {
  election: Election;
  epoch = 0;
  frozenUntil = 0;
  readonly seen: { epoch: number; term: number }[] = [];
  /** Every claim that is still under way, those that were given up on too. */
  claims: Pending[] = [];
  waitingFor: Pending | undefined;

  constructor(readonly name: string, readonly speed: number, readonly offset: number) {
    this.election = startElection(this.clock(0));
  }

  clock(trueMs: number): number {
    return this.offset + trueMs * this.speed;
  }

  sure(trueMs: number): boolean {
    return sure(this.election, this.clock(trueMs));
  }
}

/** One step's luck for one control. */
interface Luck {
  readonly requestMs: number;
  readonly requestLost: boolean;
  readonly replyMs: number;
  readonly replyLost: boolean;
  readonly freezeMs: number;
}

const luck: fc.Arbitrary<Luck> = fc.record({
  requestMs: fc.oneof({ weight: 4, arbitrary: fc.constant(5) }, fc.nat(15_000)),
  requestLost: fc.nat(9).map((n) => n === 0),
  replyMs: fc.oneof({ weight: 4, arbitrary: fc.constant(5) }, fc.nat(15_000)),
  replyLost: fc.nat(9).map((n) => n === 0),
  freezeMs: fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, fc.nat(30_000)),
});

// Real clocks differ by far less than 2 % either way; the margin is for more than that.
const clock = fc.record({
  speed: fc.double({ min: 0.98, max: 1.02, noNaN: true }),
  offset: fc.double({ min: -1e9, max: 1e9, noNaN: true }),
});

class Run {
  readonly store = new Store();
  readonly contenders: readonly Contender[];
  now = 0;
  #next = 0;

  constructor(
    clocks: readonly { speed: number; offset: number }[],
    readonly storeSpeed: number,
    readonly lucks: readonly Luck[],
  ) {
    this.contenders = clocks.map(({ speed, offset }, index) =>
      new Contender(`c${index}`, speed, offset)
    );
  }

  /** Advances true time; `calm` means that nothing goes wrong. */
  step(calm: boolean): void {
    this.now += STEP_MS;
    for (const each of this.contenders) this.#stepOne(each, calm);
  }

  #stepOne(each: Contender, calm: boolean): void {
    this.#deliver(each);
    if (this.now < each.frozenUntil) return;
    this.#receive(each);
    const now = each.clock(this.now);
    if (each.waitingFor !== undefined || now < each.election.nextClaimAt) return;
    const drawn = calm ? undefined : this.#draw();
    if (drawn !== undefined && drawn.freezeMs > 0) each.frozenUntil = this.now + drawn.freezeMs;
    const claim: Pending = {
      sentAt: now,
      mine: { holder: each.name, epoch: each.epoch, writes: 0 },
      arrivesAt: drawn?.requestLost === true ? undefined : this.now + (drawn?.requestMs ?? 5),
      replyTakesMs: drawn?.replyLost === true ? undefined : drawn?.replyMs ?? 5,
    };
    each.claims.push(claim);
    each.waitingFor = claim;
  }

  // What was sent arrives though its sender has given it up.
  #deliver(each: Contender): void {
    for (const claim of each.claims) {
      if (claim.answer !== undefined || claim.arrivesAt === undefined) continue;
      if (this.now < claim.arrivesAt) continue;
      const value = this.store.claim(claim.mine, this.now * this.storeSpeed);
      claim.answer = { at: this.now + (claim.replyTakesMs ?? Infinity), value };
    }
    each.claims = each.claims.filter((claim) =>
      claim.arrivesAt !== undefined && (claim.answer === undefined || claim === each.waitingFor)
    );
  }

  #receive(each: Contender): void {
    const claim = each.waitingFor;
    if (claim === undefined) return;
    const now = each.clock(this.now);
    if (claim.answer !== undefined && this.now >= claim.answer.at) {
      each.waitingFor = undefined;
      const { value } = claim.answer;
      each.election = answered({ sentAt: claim.sentAt, leaseMs: LEASE_MS }, value);
      if (value.kind === "granted" && value.epoch !== each.epoch) {
        each.epoch = value.epoch;
        each.seen.push({ epoch: value.epoch, term: value.term });
      }
    } else if (now - claim.sentAt >= CLAIM_MS_MAX) {
      each.waitingFor = undefined;
      each.election = unanswered(each.election, now);
    }
  }

  #draw(): Luck | undefined {
    const drawn = this.lucks[this.#next % this.lucks.length];
    this.#next++;
    return drawn;
  }
}

const runs = fc.record({
  clocks: fc.array(clock, { minLength: 2, maxLength: 4 }),
  storeSpeed: fc.double({ min: 0.98, max: 1.02, noNaN: true }),
  lucks: fc.array(luck, { minLength: 20, maxLength: 80 }),
});

Deno.test("no two controls are ever sure that they lead, and each epoch and term is given once", () => {
  let led = 0;
  let changed = 0;
  fc.assert(
    fc.property(runs, ({ clocks, storeSpeed, lucks }) => {
      const run = new Run(clocks, storeSpeed, lucks);
      for (let step = 0; step < 2_000; step++) {
        run.step(false);
        const leading = run.contenders.filter((each) => each.sure(run.now));
        ok(leading.length <= 1, `at ${run.now}: ${leading.map(({ name }) => name).join(", ")}`);
        led += leading.length;
      }
      const seen = run.contenders.flatMap((each) => each.seen);
      deepEqual(new Set(seen.map(({ epoch }) => epoch)).size, seen.length);
      deepEqual(new Set(seen.map(({ term }) => term)).size, seen.length);
      for (const { seen } of run.contenders) {
        deepEqual(seen, seen.toSorted((a, b) => a.epoch - b.epoch || a.term - b.term));
      }
      changed += Math.max(0, seen.length - 1);
    }),
    { numRuns: 1_000 },
  );
  ok(led > 100_000 && changed > 300, `${led} steps were led, in ${changed} changes`);
});

Deno.test("once messages arrive again, exactly one control leads within two leases, and stays", () => {
  fc.assert(
    fc.property(runs, ({ clocks, storeSpeed, lucks }) => {
      const run = new Run(clocks, storeSpeed, lucks);
      for (let step = 0; step < 400; step++) run.step(false);
      // Those that stand still come back, and what is under way arrives.
      for (let ms = 0; ms < 30_000 + 2 * LEASE_MS; ms += STEP_MS) run.step(true);
      const leader = () => run.contenders.filter((each) => each.sure(run.now)).map((c) => c.name);
      const before = leader();
      deepEqual(before.length, 1);
      for (let ms = 0; ms < 5 * LEASE_MS; ms += STEP_MS) {
        run.step(true);
        deepEqual(leader(), before);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("the property notices a holder that trusts its clock from when the answer came", () => {
  const found = fc.check(
    fc.property(runs, ({ clocks, storeSpeed, lucks }) => {
      const run = new Run(clocks, storeSpeed, lucks);
      for (let step = 0; step < 2_000; step++) {
        run.step(false);
        const trusting = run.contenders.filter((each) =>
          each.election.kind === "leading" &&
          each.clock(run.now) < each.election.sureUntil + CLAIM_MS_MAX
        );
        ok(trusting.length <= 1);
      }
    }),
    { numRuns: 300 },
  );
  ok(found.failed);
});
