import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { Admission } from "./admission.ts";
import { BANDS, rankOf } from "./band.ts";
import type { Ticket } from "./model_queue.ts";

const BOUND = { requestsMax: 6, bytesMax: 60, waitMsMax: 5_000, promoteAfterMs: 3_000 };
const BOUNDS = { platinum: BOUND, gold: BOUND, silver: BOUND, bronze: BOUND };

type Action =
  | {
    readonly kind: "enter";
    readonly band: Ticket["band"];
    readonly tenant: string;
    readonly tokens: number;
    readonly bytes: number;
  }
  | { readonly kind: "leave" | "end"; readonly which: number }
  | { readonly kind: "pump" }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "capacity"; readonly capacity: number };

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("enter" as const),
        band: fc.constantFrom(...BANDS),
        tenant: fc.constantFrom("a", "b", "c"),
        tokens: fc.integer({ min: 1, max: 1_000 }),
        bytes: fc.nat(30),
      }),
    },
    fc.record({ kind: fc.constantFrom("leave" as const, "end" as const), which: fc.nat(20) }),
    fc.constant({ kind: "pump" } as const),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(4_000) }),
    fc.record({ kind: fc.constant("capacity" as const), capacity: fc.integer({ min: 0, max: 5 }) }),
  ),
  { maxLength: 80 },
);

/** Drives an admission and keeps its own books, in the plainest way there is. */
class Books {
  capacity = 3;
  now = 0;
  readonly waiting: Ticket[] = [];
  readonly running: Ticket[] = [];
  readonly fates = new Map<Ticket, string>();
  readonly admission = new Admission({
    bounds: BOUNDS,
    fullness: () => ({
      saturation: this.capacity === 0 ? 1 : this.running.length / this.capacity,
      capacity: this.capacity,
      own: this.running.length,
    }),
  });

  settle(ticket: Ticket, fate: string): void {
    ok(!this.fates.has(ticket), "a request had two fates");
    this.fates.set(ticket, fate);
  }

  letIn(ticket: Ticket): void {
    this.settle(ticket, "let_in");
    const index = this.waiting.indexOf(ticket);
    if (index >= 0) this.waiting.splice(index, 1);
    // One more than there is room for would wait inside an engine.
    ok(
      this.capacity === 0 || this.running.length === 0 || this.running.length < this.capacity,
      "there was no room",
    );
    const before = this.waiting.slice(0, Math.max(index, 0)).find((other) =>
      other.band === ticket.band && other.tenant === ticket.tenant
    );
    equal(before, undefined, "one of the same tenant came before");
    this.running.push(ticket);
  }

  pump(): void {
    for (const ticket of this.admission.pump("m", this.now)) this.letIn(ticket);
  }

  act(action: Action): void {
    switch (action.kind) {
      case "enter":
        return this.enter({ ...action, enteredAt: this.now });
      case "leave": {
        const [ticket] = this.waiting.splice(action.which, 1);
        if (ticket === undefined) return;
        ok(this.admission.leave("m", ticket));
        ok(!this.admission.leave("m", ticket));
        return this.settle(ticket, "left");
      }
      case "end": {
        const [ticket] = this.running.splice(action.which, 1);
        if (ticket === undefined) return;
        this.admission.end("m", ticket, { tokens: ticket.tokens * 2, now: this.now });
        return this.pump();
      }
      case "pump":
        return this.pump();
      case "wait":
        this.now += action.ms;
        return this.pump();
      case "capacity":
        this.capacity = action.capacity;
        return this.admission.lookAgain();
    }
  }

  enter(ticket: Ticket): void {
    const entered = this.admission.enter("m", ticket, this.now);
    if (entered.kind === "let_in") return this.letIn(ticket);
    if (entered.kind === "waits") return void this.waiting.push(ticket);
    this.settle(ticket, "rejected");
    const same = this.waiting.filter(({ band }) => band === ticket.band);
    const bytes = same.reduce((sum, each) => sum + each.bytes, 0);
    ok(same.length >= BOUND.requestsMax || bytes + ticket.bytes > BOUND.bytesMax);
  }
}

Deno.test("Admission gives every request one fate, keeps a tenant's order, and counts to zero", () => {
  fc.assert(fc.property(actions, (steps) => {
    const books = new Books();
    for (const step of steps) {
      books.act(step);
      equal(
        books.admission.waiting().reduce((sum, { requests }) => sum + requests, 0),
        books.waiting.length,
      );
      ok(books.admission.waiting().every(({ bytes, requests }) => bytes >= 0 && requests > 0));
    }
    books.capacity = 100;
    books.admission.lookAgain();
    // Headroom is forgotten within a minute or so.
    for (let index = 0; index < 40 && books.waiting.length > 0; index++) {
      books.act({ kind: "end", which: 0 });
      books.act({ kind: "wait", ms: 4_000 });
    }
    equal(books.waiting.length, 0, "a request was forgotten");
    while (books.running.length > 0) books.act({ kind: "end", which: 0 });
    deepEqual(books.admission.waiting(), []);
    books.admission.prune(() => false);
    deepEqual(books.admission.saturations(books.now), []);
  }));
});

Deno.test("Admission keeps nobody waiting while there is room, and nobody behind a lower band", () => {
  fc.assert(fc.property(actions, (steps) => {
    const books = new Books();
    for (const step of steps) {
      const before = [...books.waiting];
      const running = new Set(books.running);
      books.act(step);
      books.pump();
      if (books.running.length === 0 || books.capacity === 0) equal(books.waiting.length, 0);
      const best = Math.min(...books.waiting.map(({ band }) => rankOf(band)));
      if (best === 0) ok(books.running.length >= books.capacity, "platinum waits beside free room");
      // Who was let in now, not starved, is of no lower band than those that go on waiting.
      for (const ticket of books.running) {
        if (running.has(ticket) || !before.includes(ticket)) continue;
        const behind = books.waiting.filter((other) =>
          before.includes(other) && rankOf(other.band) < rankOf(ticket.band)
        );
        if (behind.length > 0) ok(books.now - ticket.enteredAt >= BOUND.promoteAfterMs);
      }
    }
  }));
});
