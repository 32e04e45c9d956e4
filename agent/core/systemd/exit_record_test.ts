import { deepEqual, equal } from "node:assert/strict";
import * as fc from "fast-check";
import { decodeExitRecord, EXIT_RECORD_BYTES, startFailure } from "./exit_record.ts";

function record(result: string, code: string, status: string): string {
  return `heddle-exit-1\n${result}\n${code}\n${status}\n`.padEnd(EXIT_RECORD_BYTES);
}

const CASES: readonly (readonly [text: string, expected: unknown])[] = [
  [record("success", "exited", "0"), { code: 0, signal: "", outOfMemory: false }],
  [record("exit-code", "exited", "137"), { code: 137, signal: "", outOfMemory: false }],
  [record("signal", "killed", "KILL"), { code: 137, signal: "SIGKILL", outOfMemory: false }],
  [record("core-dump", "dumped", "SEGV"), { code: 139, signal: "SIGSEGV", outOfMemory: false }],
  [record("oom-kill", "killed", "TERM"), { code: 143, signal: "SIGTERM", outOfMemory: true }],
  // Real-time signals have no number that is alike everywhere.
  [record("signal", "killed", "RTMIN"), { signal: "SIGRTMIN", outOfMemory: false }],
  [" ".repeat(EXIT_RECORD_BYTES), undefined],
  ["heddle-exit-1\nsuccess\nexi", undefined],
  ["heddle-exit-2\nsuccess\nexited\n0\n", undefined],
  ['{"version":1,"code":0,"signal":""}', undefined],
];

Deno.test("decodeExitRecord() reads what systemd writes, and nothing else", () => {
  for (const [text, expected] of CASES) deepEqual(decodeExitRecord(text), expected, text.trim());
});

Deno.test("startFailure() knows an exit of systemd's own from one of the program", () => {
  equal(startFailure(record("exit-code", "exited", "1")), undefined);
  equal(startFailure(record("signal", "killed", "KILL")), undefined);
  equal(startFailure(""), undefined);
  equal(
    startFailure(record("exit-code", "exited", "203"))?.startsWith("the program does not exist"),
    true,
  );
});

Deno.test("decodeExitRecord() throws for nothing that an engine can write there", () => {
  const part = fc.constantFrom("heddle-exit-1", "\n", "exited", "killed", "0", "KILL", "{", "é");
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      decodeExitRecord(parts.join(""));
      startFailure(parts.join(""));
    }),
    { numRuns: 10_000 },
  );
});
