import { equal } from "node:assert/strict";
import { isAtLeast, isOlder } from "./version_order.ts";

const CASES: readonly (readonly [version: string, since: string, older: boolean])[] = [
  ["0.11.0", "0.11.1", true],
  ["0.11.1", "0.11.1", false],
  ["0.9.2", "0.11.1", true],
  ["0.28.1", "0.11.1", false],
  ["0.11", "0.11.1", true],
  ["1", "0.11.1", false],
  ["0.11.1rc2+cu129", "0.11.1", false],
  ["v0.10.2.post1", "0.11.1", true],
  ["0.1.dev1+g12ab", "0.11.1", false],
  ["unknown", "0.11.1", false],
  ["", "0.11.1", false],
];

Deno.test("isOlder() counts by numbers, and takes what it cannot tell for new enough", () => {
  for (const [version, since, older] of CASES) equal(isOlder(version, since), older, version);
});

Deno.test("isAtLeast() takes what it cannot tell for too old", () => {
  const unknown = ["0.1.dev1+g12ab", "unknown", ""];
  for (const [version, since, older] of CASES) {
    equal(isAtLeast(version, since), !older && !unknown.includes(version), version);
  }
});
