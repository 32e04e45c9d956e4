import { deepEqual, equal } from "node:assert/strict";
import { healthAfter, startingHealth, toldOf } from "./standing.ts";

const LOST = { reason: "nvlink_lost", message: "1 of 2" } as const;

Deno.test("without a health URL an engine serves from the first claim", () => {
  equal(toldOf(startingHealth(false), undefined).state, "serving");
  equal(toldOf(startingHealth(false), LOST).state, "degraded");
});

Deno.test("with one it assembles until it answers, and says why", () => {
  const asked = startingHealth(true);
  equal(toldOf(asked, undefined).state, "assembling");
  const refused = healthAfter(asked, "nothing listens yet");
  deepEqual(toldOf(refused, undefined), {
    state: "assembling",
    reason: "not_ready",
    message: "nothing listens yet",
  });
  equal(toldOf(healthAfter(refused, undefined), undefined).state, "serving");
});

Deno.test("not ready outweighs degraded", () => {
  equal(toldOf(startingHealth(true), LOST).state, "assembling");
});

Deno.test("one that served is not ready after three bad answers in a row, and no sooner", () => {
  let health = healthAfter(startingHealth(true), undefined);
  const states = ["late", "late", undefined, "late", "late", "late", undefined].map((why) => {
    health = healthAfter(health, why);
    return toldOf(health, undefined).state;
  });
  deepEqual(states, [
    ...["serving", "serving", "serving", "serving", "serving", "assembling", "serving"],
  ]);
});
