import { deepEqual, equal, ok } from "node:assert/strict";
import { FIRST_ERRORS_MAX, LAST_LINES_MAX, LogDigest } from "./log_digest.ts";
import { readLogLine } from "./log_line.ts";

Deno.test("readLogLine() takes away what engines put before a line, and keeps what it says", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    [
      "\x1b[36m(EngineCore_DP0 pid=12)\x1b[0m ERROR 09-12 08:00:00 [core.py:842] boom",
      "boom",
      "error",
    ],
    ["(RayWorkerWrapper pid=12, ip=10.0.0.2) WARNING 09-12 08:00:00 [a.py:1] hm", "hm", "warning"],
    ["[rank0]:[E912 08:00:00.123456789 ProcessGroupNCCL.cpp:1] boom", "boom", "error"],
    ["[rank3]: RuntimeError: x", "RuntimeError: x", "none"],
    ["[2026-09-12 08:00:00 DP1 TP3] boom", "boom", "none"],
    ["TP0] boom", "boom", "none"],
    ["2026-09-12 08:00:00,123\tERROR worker.py:12 -- boom", "boom", "error"],
    ["2026-09-12T08:00:00.5Z stderr F INFO:     up", "up", "info"],
    ["Sep 12 08:00:00 gpu-1 vllm[12]: ERROR 09-12 08:00:00 [a.py:1] boom", "boom", "error"],
    ["vllm-1  | ERROR:    boom", "boom", "error"],
    ["0.00.123.456 E boom", "boom", "error"],
    ["10%|#\r100%|##########", "100%|##########", "none"],
    ["[server] boom", "boom", "none"],
    ["plain words: [1] (2)", "plain words: [1] (2)", "none"],
  ];
  for (const [line, text, level] of cases) {
    const read = readLogLine(line.replace("\t", " "));
    deepEqual([read.text, read.level], [text, level], line);
  }
});

Deno.test("readLogLine() puts lines of different makers in the order of their times", () => {
  const times = [
    "INFO 09-12 08:00:00 [a.py:1] x",
    "[2026-09-12 08:00:01 TP0] x",
    "[rank0]:[E912 08:00:01.500000000 a.cpp:1] x",
    "2026-09-12T08:00:02.000Z x",
    "Sep 12 08:00:03 host a[1]: x",
    "INFO 10-01 00:00:00 [a.py:1] x",
  ].map((line) => readLogLine(line).time ?? NaN);
  deepEqual(times, times.toSorted((a, b) => a - b));
  equal(readLogLine("no time").time, undefined);
});

Deno.test("LogDigest keeps the first errors and the last lines, whatever comes between", () => {
  const digest = new LogDigest();
  digest.push("Traceback (most recent call last):");
  digest.push('  File "a.py", line 1, in <module>');
  digest.push("ValueError: the root");
  for (let count = 0; count < 10_000; count++) digest.push(`ERROR: noise ${count}`);
  equal(digest.firstErrors.length, FIRST_ERRORS_MAX);
  deepEqual(digest.firstErrors.slice(0, 2), [
    "Traceback (most recent call last):",
    "ValueError: the root",
  ]);
  equal(digest.lastLines.length, LAST_LINES_MAX);
  equal(digest.lastLines.at(-1), "ERROR: noise 9999");
  equal(digest.unexplained, "ValueError: the root");
  equal(digest.lineCount, 10_003);
});

Deno.test("LogDigest finds a cause in a traceback that is longer than what it keeps", () => {
  const digest = new LogDigest();
  for (let count = 0; count < 500; count++) {
    digest.push(`(EngineCore pid=1) ERROR 09-12 08:00:00 [core.py:1]     frame ${count} error`);
  }
  digest.push("(EngineCore pid=1) ERROR 09-12 08:00:00 [core.py:1] CUDA out of memory");
  for (let count = 0; count < 2_000; count++) digest.push("ERROR: EngineDeadError");
  const [finding] = digest.findings;
  equal(finding?.row.reason, "gpu_out_of_memory");
  equal(finding?.number, 501);
  ok(digest.firstErrors.length <= FIRST_ERRORS_MAX);
});
