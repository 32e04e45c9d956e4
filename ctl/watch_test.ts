import { deepEqual, equal } from "node:assert/strict";
import { fitted } from "./watch.ts";

const TEN = Array.from({ length: 10 }, (_, index) => `line ${index}\n`).join("");

Deno.test("--watch: what is higher than the screen is cut and said to be", () => {
  equal(fitted(TEN, undefined), TEN);
  equal(fitted(TEN, { lines: 11, columns: 80 }), TEN);
  equal(
    fitted(TEN, { lines: 5, columns: 80 }),
    "line 0\nline 1\nline 2\n… 7 more lines; without --watch they are all there\n",
  );
});

Deno.test("--watch: a narrow screen breaks lines, which counts; colours do not", () => {
  const wide = `${"x".repeat(90)}\n`;
  const shown = fitted(wide + TEN, { lines: 6, columns: 40 });
  deepEqual(shown.split("\n").map((line) => line.length), [90, 6, 40, 0]);
  const red = `\u001b[31m${"x".repeat(40)}\u001b[0m\n`;
  equal(fitted(red, { lines: 2, columns: 40 }), red);
  equal(
    fitted("\n\n\n", { lines: 3, columns: 40 }),
    "\n… 2 more lines; without --watch they are\n",
  );
});
