import { deepEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  type CapturedEntry,
  formatSysfsCapture,
  namesBelow,
  parseSysfsCapture,
} from "./sysfs_capture.ts";

const part = fc.stringMatching(/^[A-Za-z0-9_.:]{1,8}$/);
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
const entry: fc.Arbitrary<CapturedEntry> = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9:()]{1,12}( [a-z]{1,4})?$/).map((text) => ({
    kind: "text" as const,
    text,
  })),
  fc.constantFrom<CapturedEntry>({ kind: "unreadable" }, { kind: "denied" }, { kind: "directory" }),
  path.map((target) => ({ kind: "link" as const, target: `../${target}` })),
);

Deno.test("parseSysfsCapture() reads what formatSysfsCapture() wrote", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(path, entry), { maxLength: 12 }), (entries) => {
      const capture = new Map(entries);
      deepEqual(
        [...parseSysfsCapture(formatSysfsCapture(capture))].sort(),
        [...capture].sort(),
      );
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("parseSysfsCapture() never throws, and lists only what stands in the input", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const capture = parseSysfsCapture(text);
      for (const key of capture.keys()) namesBelow(capture, key);
      deepEqual([...capture.keys()].filter((key) => !text.includes(key)), []);
    }),
    { numRuns: 10_000 },
  );
});
