import { equal } from "node:assert/strict";
import { unknownName } from "./known_name.ts";

const message = (name: string, known: string[]) =>
  unknownName({ action: "drain", noun: "node", name }, known).message;

Deno.test("unknownName() proposes the nearest name", () => {
  const known = ["gpu-01", "gpu-02", "storage"];
  equal(message("GPU-1", known), 'Cannot drain: there is no node "GPU-1", did you mean "gpu-01"?');
  equal(
    message("storrage", known),
    'Cannot drain: there is no node "storrage", did you mean "storage"?',
  );
});

Deno.test("unknownName() lists what is known when nothing is near", () => {
  equal(
    message("router", ["b", "a", "b"]),
    'Cannot drain: there is no node "router". Known: a, b',
  );
  equal(message("x", []), 'Cannot drain: there is no node "x", and none is known yet');
  const many = Array.from({ length: 12 }, (_, index) => `node-${index + 10}`);
  equal(message("", many).endsWith("node-19 and 2 more"), true);
});
