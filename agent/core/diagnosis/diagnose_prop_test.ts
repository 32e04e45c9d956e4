import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { diagnose, diagnosisText } from "./diagnose.ts";
import { FAILURE_ROWS, rowOf } from "./failure_table.ts";
import { LogDigest } from "./log_digest.ts";
import { readLogLine } from "./log_line.ts";

const fragments = FAILURE_ROWS.flatMap(({ lines }) => lines.map(({ source }) => source));
const piece = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.constantFrom(...fragments),
  fc.constantFrom(
    "\x1b[31m",
    "\x1b]0;title\x07",
    "ERROR 09-12 08:00:00 [core.py:1] ",
    "[rank0]: ",
    "[2026-09-12 08:00:00 TP0] ",
    "(EngineCore pid=1) ",
    "EngineDeadError",
    "CUDA out of memory",
    "No space left on device",
    "Free memory on device (0/0 GiB) is less than desired GPU memory utilization",
  ),
);
const line = fc.array(piece, { maxLength: 5 }).map((parts) => parts.join(""));
const log = fc.array(line, { maxLength: 30 });
const evidence = fc.record({
  exit: fc.record({
    code: fc.integer({ min: 0, max: 255 }),
    signal: fc.constantFrom("", "SIGKILL", "SIGSEGV", "SIGBUS", "SIGRTMIN"),
    outOfMemory: fc.boolean(),
  }),
  diskFreeBytes: fc.constantFrom(0, 1e12),
  shmFreeBytes: fc.constantFrom(0, 1e12),
}, { requiredKeys: [] });

Deno.test("diagnose() never throws, and cites only lines that it was given", () => {
  fc.assert(
    fc.property(fc.array(log, { maxLength: 3 }), evidence, (logs, known) => {
      const digests = logs.map((lines, index) => {
        const digest = new LogDigest();
        for (const each of lines) digest.push(each);
        for (const kept of [...digest.firstErrors, ...digest.lastLines]) ok(lines.includes(kept));
        return { process: String(index), digest };
      });
      const found = diagnose(digests, known);
      if (found === undefined) return;
      ok(diagnosisText(found).length > 0);
      if (found.said === undefined) return;
      const { process, line, number } = found.said;
      ok(logs[Number(process)]?.includes(line), line);
      if (number !== undefined) equal(logs[Number(process)]?.[number - 1], line);
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("readLogLine() gives a part of the line, and the same again for it", () => {
  fc.assert(
    fc.property(line, (text) => {
      const read = readLogLine(text);
      ok(read.text.length <= text.length);
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("long lines of any kind are read in no time", () => {
  const hostile = [
    "(",
    "[",
    " ",
    "a",
    "[rank0]: ",
    "-",
    "\x1b]",
    "No space left on device ",
    "1 is ",
  ];
  const begunAt = performance.now();
  for (const each of hostile) {
    const { text } = readLogLine(each.repeat(200_000 / each.length));
    rowOf(text);
  }
  ok(performance.now() - begunAt < 2_000);
});
