import { equal } from "node:assert/strict";
import { formatBytes, formatShare } from "./quantity.ts";

const GIB = 1024n ** 3n;

Deno.test("formatBytes() takes the unit in which a number is short", () => {
  equal(formatBytes(1_023), "1023 B");
  equal(formatBytes(1_024n), "1 KiB");
  equal(formatBytes(230n * 1024n ** 2n), "230.0 MiB");
  equal(formatBytes(5_000n * 1024n ** 4n), "5000.0 TiB");
});

Deno.test("formatShare() says how much, how fast and how long, and draws a bar for a person", () => {
  const share = { done: 12n * GIB, total: 80n * GIB, rate: 230n * 1024n ** 2n, secondsLeft: 303n };
  equal(formatShare(share, false), "12.0 GiB of 80.0 GiB (15 %), 230.0 MiB/s, 5m3s left");
  equal(
    formatShare(share, true),
    "[###.................] 12.0 GiB of 80.0 GiB (15 %), 230.0 MiB/s, 5m3s left",
  );
});

Deno.test("formatShare() leaves out what is not known, and shows what is not whole as not whole", () => {
  const unknown = { rate: undefined, secondsLeft: undefined };
  equal(
    formatShare({ done: 0n, total: 0n, ...unknown }, true),
    `[${".".repeat(20)}] 0 B of 0 B (0 %)`,
  );
  equal(
    formatShare({ done: 80n * GIB - 1n, total: 80n * GIB, ...unknown }, true),
    `[${"#".repeat(19)}.] 80.0 GiB of 80.0 GiB (99 %)`,
  );
  // More came than was promised: the bar stays in its place.
  equal(
    formatShare({ done: 3n, total: 2n, ...unknown }, true),
    `[${"#".repeat(20)}] 3 B of 2 B (150 %)`,
  );
});
