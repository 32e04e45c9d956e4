import { equal } from "node:assert/strict";
import { routingProfileOf } from "./routing_profile.ts";

Deno.test("routingProfileOf() asks the key, then the header, then the model", () => {
  const profile = (caller?: string, header?: string, model = "") =>
    routingProfileOf({ caller, header, model });
  equal(profile(), "chat");
  equal(profile(undefined, undefined, "long-context"), "long-context");
  equal(profile(undefined, " Batch ", "long-context"), "batch");
  equal(profile("chat", "batch", "long-context"), "chat");
  equal(profile(undefined, "constructor", "nonsense"), "chat");
});
