import { equal } from "node:assert/strict";
import { joinReasons, reasonText } from "./reason_text.ts";

Deno.test("reasonText() says a word once", () => {
  equal(reasonText("engine_hung", "no token for 2m"), "engine_hung: no token for 2m");
  equal(reasonText("engine_hung", "engine_hung: no token"), "engine_hung: no token");
  equal(reasonText("engine_hung", "engine_hung"), "engine_hung");
  equal(reasonText("out", "outside of its memory"), "out: outside of its memory");
  equal(reasonText("", "no token"), "no token");
  equal(reasonText("drained", ""), "drained");
  equal(reasonText("", ""), "");
});

Deno.test("joinReasons() leaves out what another says already", () => {
  equal(joinReasons(["a", "", "b", "a"]), "a; b");
  equal(
    joinReasons(["no token for 2m", "engine_hung: no token for 2m"]),
    "engine_hung: no token for 2m",
  );
  equal(joinReasons([]), "");
});
