import { equal } from "node:assert/strict";
import { triesInVain } from "./reconnect.ts";

Deno.test("triesInVain() grows while controls are away and ends with the first word", () => {
  equal(triesInVain(0, "failed", 0), 1);
  equal(triesInVain(7, "failed", 0), 8);
  equal(triesInVain(7, "heard", 0), 0);
});

Deno.test("triesInVain() does not hold a control's absence against it once it answers", () => {
  equal(triesInVain(9, "stale", 1), 1);
  equal(triesInVain(1, "stale", 2), 2);
});
