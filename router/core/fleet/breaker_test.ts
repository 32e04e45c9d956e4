import { equal } from "node:assert/strict";
import {
  after,
  allows,
  type Breaker,
  CLOSED,
  lastResort,
  sent,
  settle,
  withdrawn,
} from "./breaker.ts";

const fault = { kind: "fault", retryAfterMs: 0 } as const;
const connect = { kind: "connect", retryAfterMs: 0 } as const;
const success = { kind: "success", retryAfterMs: 0 } as const;

function faulted(times: number, now = 0): Breaker {
  let breaker: Breaker = CLOSED;
  for (let count = 0; count < times; count++) breaker = after(breaker, fault, now);
  return breaker;
}

Deno.test("after() opens at once when nothing takes the call", () => {
  const breaker = after(CLOSED, connect, 0);
  equal(breaker.kind, "open");
  equal(allows(breaker, 999), false);
  equal(lastResort(breaker), false);
});

Deno.test("after() opens on the third fault in a row, not on three with a success between", () => {
  equal(faulted(2).kind, "closed");
  equal(faulted(3).kind, "open");
  equal(lastResort(faulted(3)), true);
  const mixed = after(after(faulted(2), success, 0), fault, 0);
  equal(mixed.kind, "closed");
});

Deno.test("settle() lets one probe through after the cooldown, and a second one only after it", () => {
  const open = after(CLOSED, connect, 0);
  equal(settle(open, 1_000).kind, "half_open");
  const probing = sent(open, 1_000);
  equal(allows(probing, 1_000), false);
  equal(allows(withdrawn(probing), 1_000), true);
  equal(after(probing, success, 1_100).kind, "closed");
});

Deno.test("after() doubles the cooldown while probes fail, up to 30 s", () => {
  let breaker = after(CLOSED, connect, 0);
  let now = 0;
  const waits: number[] = [];
  for (let count = 0; count < 8; count++) {
    if (breaker.kind !== "open") throw new Error(breaker.kind);
    waits.push(breaker.until - now);
    now = breaker.until;
    breaker = after(sent(breaker, now), connect, now);
  }
  equal(waits.join(" "), "1000 2000 4000 8000 16000 30000 30000 30000");
});

Deno.test("after() waits as long as the engine asked for when that is later, within two minutes", () => {
  const asked = after(CLOSED, { kind: "connect", retryAfterMs: 7_000 }, 0);
  equal(asked.kind === "open" && asked.until, 7_000);
  const sooner = after(CLOSED, { kind: "connect", retryAfterMs: 10 }, 0);
  equal(sooner.kind === "open" && sooner.until, 1_000);
  const absurd = after(CLOSED, { kind: "connect", retryAfterMs: 1e12 }, 0);
  equal(absurd.kind === "open" && absurd.until, 120_000);
});

Deno.test("after() takes a late success as news, and a late fault as none, while it is open", () => {
  const open = after(CLOSED, connect, 0);
  equal(after(open, fault, 500), open);
  equal(after(open, success, 500).kind, "closed");
});
