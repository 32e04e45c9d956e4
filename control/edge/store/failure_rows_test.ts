import { deepEqual, equal } from "node:assert/strict";
import { failureRow, failuresOf } from "./failure_rows.ts";

const failures = {
  failedStarts: 1,
  blocked: [{ profile: "p", message: "no", fingerprint: "f", told: [{ what: "vllm 1" }] }],
};

Deno.test("failuresOf() reads what failureRow() wrote, and leaves out what it cannot read", () => {
  const row = failureRow({ kind: "failures", model: "m", failures });
  const rows = [
    { model: "of a newer control", value: '{"failedStarts":1,"blocked":[{"profile":7}]}' },
    { ...row },
    { model: "broken", value: "{" },
    { model: "older", value: '{"failedStarts":-1,"blocked":[]}' },
  ];
  deepEqual(failuresOf(rows), new Map([["m", failures]]));
});

Deno.test("failuresOf() reads a record with more in it than this version knows", () => {
  const value = JSON.stringify({ ...failures, since: 3 });
  deepEqual(failuresOf([{ model: "m", value }]), new Map([["m", failures]]));
});

Deno.test("failureRow() removes the row of a model of which nothing is remembered", () => {
  equal(failureRow({ kind: "failures", model: "m" }).value, undefined);
});
