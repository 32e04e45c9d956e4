import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { after, allows, CLOSED, lastResort } from "../fleet/breaker.ts";
import { candidate, onlyInFlight, wanted } from "./candidate_fake.ts";
import { pick } from "./pick.ts";

const NOW = 1_000;
/** Loads closer than this are equal to who picks; see the tie in pick.ts. */
const NEARLY = 0.5;

const breakers = fc.constantFrom(
  CLOSED,
  after(CLOSED, { kind: "connect", retryAfterMs: 0 }, 500),
  after(CLOSED, { kind: "connect", retryAfterMs: 0 }, 0),
  [1, 2, 3].reduce((b) => after(b, { kind: "fault", retryAfterMs: 0 }, 500), CLOSED),
);

const fleets = fc.array(
  fc.record({
    inFlight: fc.nat(20),
    othersInFlight: fc.nat(20),
    breaker: breakers,
    busyUntil: fc.constantFrom(0, 2_000),
    weight: fc.integer({ min: 1, max: 5 }),
    priority: fc.integer({ min: -1, max: 1 }),
    draining: fc.boolean(),
    tried: fc.boolean(),
  }),
  { maxLength: 8 },
).map((specs) => ({
  candidates: specs.map(({ weight, priority, draining, tried: _, ...live }, index) =>
    candidate(`r${index}`, live, { weight, priority, draining })
  ),
  tried: new Set(specs.flatMap(({ tried }, index) => tried ? [`r${index}`] : [])),
}));

Deno.test("pick() never takes who drains or was tried, and refuses only when nobody else is left", () => {
  fc.assert(fc.property(fleets, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (
    { candidates, tried },
    chance,
  ) => {
    const result = pick({
      candidates,
      wanted: wanted({ tried }),
      weights: onlyInFlight,
      chance,
      now: NOW,
    });
    const possible = candidates.filter(({ endpoint, breaker }) =>
      !endpoint.draining && !tried.has(endpoint.replicaId) &&
      (allows(breaker, NOW) || lastResort(breaker))
    );
    if (result.kind === "none") {
      equal(possible.length, 0);
      equal(result.rejections.length, candidates.length);
      return;
    }
    ok(possible.some(({ endpoint }) => endpoint === result.candidate.endpoint));
  }));
});

Deno.test("pick() never takes a worse one than it could: priority, then requests per weight", () => {
  fc.assert(fc.property(fleets, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (
    { candidates, tried },
    chance,
  ) => {
    const result = pick({
      candidates,
      wanted: wanted({ tried }),
      weights: onlyInFlight,
      chance,
      now: NOW,
    });
    if (result.kind === "none") return;
    const usable = candidates.filter(({ endpoint, breaker, busyUntil }) =>
      !endpoint.draining && !tried.has(endpoint.replicaId) && allows(breaker, NOW) &&
      busyUntil <= NOW
    );
    if (usable.length === 0) return;
    const chosen = usable.find(({ endpoint }) => endpoint === result.candidate.endpoint);
    ok(chosen !== undefined);
    const load = (c: typeof chosen) => (c.inFlight + c.othersInFlight) / c.endpoint.weight;
    for (const other of usable) {
      ok(other.endpoint.priority <= chosen.endpoint.priority);
      if (other.endpoint.priority === chosen.endpoint.priority) {
        ok(load(other) + NEARLY >= load(chosen));
      }
    }
  }));
});
