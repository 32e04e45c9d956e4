import { equal, match } from "node:assert/strict";
import { idSalt } from "./id_salt.ts";

Deno.test("idSalt() is five letters that stand apart from numbers, and another each time", () => {
  const salts = Array.from({ length: 100 }, idSalt);
  for (const salt of salts) match(salt, /^[b-df-hj-kmnp-tv-xz]{5}$/);
  // By the birthday rule two are alike in one of 500 such tests; ten are never.
  equal(new Set(salts).size > 90, true);
});
