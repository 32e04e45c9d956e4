import { deepEqual, equal, ok } from "node:assert/strict";
import type { Model } from "./core/fleet/endpoint.ts";
import { type Admitted, Queue } from "./queue.ts";

const HOLD_MS = 60_000;
const BOUNDS = { requestsMax: 10, bytesMax: 1_000, waitMsMax: 60_000, promoteAfterMs: 60_000 };
const ENTRY = { band: "silver", tenant: "t", tokens: 10, bytes: 10 } as const;

function model(name: string, over: Partial<Model> = {}): Model {
  return {
    name,
    aliases: [],
    fallbacks: [],
    routingProfile: "",
    reason: "",
    wakeable: false,
    createdS: 0,
    ...over,
  };
}

class Fleet {
  readonly serving = new Set<string>();
  readonly wakes: string[] = [];
  #waiters: (() => void)[] = [];

  serves = (name: string) => this.serving.has(name);
  /** Requests that each model's replicas take together, and have. */
  capacity = 100;
  own = 0;
  model = () => undefined;
  fullness = () => ({
    saturation: this.own / this.capacity,
    capacity: this.capacity,
    own: this.own,
  });
  wake = (name: string) => this.wakes.push(name);
  changed = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      this.#waiters.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });

  start(name: string): void {
    this.serving.add(name);
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}

function queueOf(fleet: Fleet, requestsInFlightMax = 10, bounds = BOUNDS): Queue {
  return new Queue({
    fleet,
    requestsInFlightMax,
    holdMs: HOLD_MS,
    bounds: { platinum: bounds, gold: bounds, silver: bounds, bronze: bounds },
    now: () => performance.now(),
  });
}

function asked(first: Model, ...more: Model[]) {
  return { asked: first.name, models: [first, ...more] as [Model, ...Model[]] };
}

const HERE = new AbortController().signal;

function names(admitted: Admitted): string[] {
  return admitted.models.map(({ name }) => name);
}

Deno.test("Queue lets a request in while there is room, and takes its place back once", async () => {
  const fleet = new Fleet();
  fleet.start("m");
  const queue = queueOf(fleet, 1);
  const first = await queue.admit(asked(model("m")), ENTRY, HERE);
  if (first.kind === "end") throw new Error(first.outcome.reason);
  const second = await queue.admit(asked(model("m")), ENTRY, HERE);
  equal(second.kind === "end" && second.outcome.reason, "in_flight_full");
  first.value[Symbol.dispose]();
  first.value[Symbol.dispose]();
  equal(queue.inFlight, 0);
  equal((await queue.admit(asked(model("m")), ENTRY, HERE)).kind, "next");
});

Deno.test("Queue refuses a model that has no endpoint and cannot be woken, with control's reason", async () => {
  const queue = queueOf(new Fleet());
  const step = await queue.admit(asked(model("m", { reason: "no node fits" })), ENTRY, HERE);
  if (step.kind === "next") throw new Error("let in");
  deepEqual(step.outcome, {
    reason: "model_unavailable",
    message: 'The model "m" cannot serve now: no node fits',
    param: "model",
    retryAfterS: 5,
  });
  equal(queue.inFlight, 0);
});

Deno.test("Queue offers only models that have an endpoint, in order", async () => {
  const fleet = new Fleet();
  fleet.start("b");
  const step = await queueOf(fleet).admit(asked(model("a"), model("b")), ENTRY, HERE);
  deepEqual(step.kind === "next" && names(step.value), ["b"]);
  deepEqual(fleet.wakes, []);
});

Deno.test("Queue wakes a sleeping model, but does not wait for it while a fallback can serve", async () => {
  const fleet = new Fleet();
  fleet.start("b");
  const step = await queueOf(fleet).admit(
    asked(model("a", { wakeable: true }), model("b")),
    ENTRY,
    HERE,
  );
  deepEqual(step.kind === "next" && names(step.value), ["b"]);
  deepEqual(fleet.wakes, ["a"]);
});

Deno.test("Queue holds a request until its model has started", async () => {
  const fleet = new Fleet();
  const queue = queueOf(fleet);
  const pending = queue.admit(asked(model("m", { wakeable: true })), ENTRY, HERE);
  deepEqual([...queue.waiting], [["m", 1]]);
  fleet.start("other");
  fleet.start("m");
  const step = await pending;
  deepEqual(step.kind === "next" && names(step.value), ["m"]);
  deepEqual([...queue.waiting], []);
});

Deno.test("Queue lets a held request go when its client leaves, and when the router stops", async () => {
  const leave = new AbortController();
  const queue = queueOf(new Fleet());
  const left = queue.admit(asked(model("m", { wakeable: true })), ENTRY, leave.signal);
  const stopped = queue.admit(asked(model("m", { wakeable: true })), ENTRY, HERE);
  equal(queue.waiting.get("m"), 2);
  leave.abort();
  const gone = await left;
  equal(gone.kind === "end" && gone.outcome.reason, "client_closed");
  queue.stopHolding();
  const refused = await stopped;
  equal(refused.kind === "end" && refused.outcome.reason, "shutting_down");
  deepEqual([queue.inFlight, queue.waiting.size], [0, 0]);
});

Deno.test("Queue makes a request wait for room, and says how long and why", async () => {
  const fleet = new Fleet();
  fleet.start("m");
  fleet.capacity = 1;
  const queue = queueOf(fleet);
  const first = await queue.admit(asked(model("m")), ENTRY, HERE);
  if (first.kind === "end") throw new Error(first.outcome.reason);
  equal(first.value.why, "none");
  const second = queue.admit(asked(model("m")), ENTRY, HERE);
  await Promise.resolve();
  deepEqual([...queue.waiting], [["m", 1]]);
  first.value[Symbol.dispose]();
  const admitted = await second;
  if (admitted.kind === "end") throw new Error(admitted.outcome.reason);
  equal(admitted.value.why, "saturated");
  admitted.value[Symbol.dispose]();
  equal(queue.inFlight, 0);
  deepEqual([...queue.waiting], []);
});

Deno.test("Queue refuses what its band's queue has no room for, with an honest wait", async () => {
  const fleet = new Fleet();
  fleet.start("m");
  fleet.capacity = 1;
  const queue = queueOf(fleet, 100);
  const leave = new AbortController();
  const first = await queue.admit(asked(model("m")), ENTRY, HERE);
  const waiting = Array.from(
    { length: BOUNDS.requestsMax },
    () => queue.admit(asked(model("m")), ENTRY, leave.signal),
  );
  await Promise.resolve();
  const refused = await queue.admit(asked(model("m")), ENTRY, HERE);
  if (refused.kind === "next") throw new Error("let in");
  equal(refused.outcome.reason, "queue_full");
  ok("retryAfterS" in refused.outcome && (refused.outcome.retryAfterS ?? 0) >= 1);
  // Another band has a queue of its own.
  const gold = queue.admit(asked(model("m")), { ...ENTRY, band: "gold" }, leave.signal);
  leave.abort();
  for (const step of await Promise.all([...waiting, gold])) {
    equal(step.kind === "end" ? step.outcome.reason : "", "client_closed");
  }
  equal(queue.inFlight, 1);
  if (first.kind === "next") first.value[Symbol.dispose]();
  equal(queue.inFlight, 0);
});

Deno.test("Queue lets go of a request that has waited for as long as its band may", async () => {
  const fleet = new Fleet();
  fleet.start("m");
  fleet.capacity = 1;
  const queue = queueOf(fleet, 10, { ...BOUNDS, waitMsMax: 1 });
  const first = await queue.admit(asked(model("m")), ENTRY, HERE);
  const step = await queue.admit(asked(model("m")), ENTRY, HERE);
  if (step.kind === "next") throw new Error("let in");
  equal(step.outcome.reason, "queue_expired");
  if (first.kind === "next") first.value[Symbol.dispose]();
  equal(queue.inFlight, 0);
});
