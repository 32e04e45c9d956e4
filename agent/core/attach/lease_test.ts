import { equal } from "node:assert/strict";
import { nextClaimAt, NO_LEASE, renewed, unanswered } from "./lease.ts";

Deno.test("nextClaimAt() asks at once, then every 5 s until the first answer", () => {
  equal(nextClaimAt(NO_LEASE), -Infinity);
  let lease = NO_LEASE;
  for (const now of [100, 5_100, 10_100]) {
    lease = unanswered(lease, now);
    equal(nextClaimAt(lease), now + 5_000);
  }
});

Deno.test("nextClaimAt() renews at a third of what control answered last", () => {
  equal(nextClaimAt(renewed(1_000, 30_000)), 11_000);
  equal(nextClaimAt(renewed(11_000, 3_000)), 12_000);
  equal(nextClaimAt(renewed(12_000, 600_000)), 212_000);
});

Deno.test("nextClaimAt() tries again within 5 s when a renewal was not answered", () => {
  equal(nextClaimAt(unanswered(renewed(0, 600_000), 200_000)), 205_000);
  equal(nextClaimAt(unanswered(renewed(0, 3_000), 1_000)), 2_000);
});

Deno.test("nextClaimAt() makes no hot loop of a lease that makes no sense", () => {
  equal(nextClaimAt(renewed(0, 0)), 500);
});
