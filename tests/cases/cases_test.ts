/** The cases of the fixtures, and what the harness itself promises. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { startLogging } from "@heddle/common/log";
import { NOT_YET } from "./not_yet.ts";
import { type CaseLine, readCases, readLine } from "./read_cases.ts";
import { problemsOf, runCase } from "./run_case.ts";

const FOLDER = fileURLToPath(new URL("../fixtures/openai", import.meta.url));
/** What was found in trials of the router. */
const ODD = fileURLToPath(new URL("odd", import.meta.url));

await startLogging({ format: "text", level: "error", write: () => {} });

for (const [folder, line] of [...await casesOf(FOLDER), ...await casesOf(ODD)]) {
  if (line.kind === "refused") {
    Deno.test(`${line.id} is a case`, () => assert.fail(line.why));
    continue;
  }
  const { id, title } = line.case;
  const missing = NOT_YET.get(id);
  if (missing === undefined) {
    Deno.test(`${id} ${title}`, async () => {
      assert.deepEqual(await runCase(line.case, folder), { kind: "pass" });
    });
    continue;
  }
  Deno.test(`${id} needs ${missing}, and is on the list of what is missing for a reason`, async () => {
    const problems = await problemsOf(line.case, folder);
    assert.notEqual(problems.length, 0, "It passes now: take it off the list in not_yet.ts");
  });
}

async function casesOf(folder: string): Promise<(readonly [string, CaseLine])[]> {
  return (await readCases(folder)).map((line) => [folder, line]);
}

async function run(more: Record<string, unknown>) {
  const line = readLine(
    JSON.stringify({
      id: "X1",
      title: "t",
      request: {
        method: "POST",
        path: "/v1/chat/completions",
        headers: { "content-type": "application/json" },
        body_file: "req/chat.json",
      },
      upstream: [{ file: "res/chat.json" }],
      ...more,
    }),
    1,
  );
  if (line.kind === "refused") throw new Error(line.why);
  return await runCase(line.case, FOLDER);
}

Deno.test("runCase() fails a case whose wish does not come true", async () => {
  const result = await run({ expect: { status: 404, text: "1 2 3" } });
  assert.deepEqual(result, { kind: "fail", problems: ["status 404: got 200"] });
});

Deno.test("runCase() runs variants apart and says which one failed", async () => {
  const result = await run({
    variants: [{ expect: { status: 200 } }, { expect: { status: 201 } }],
  });
  assert.deepEqual(result, { kind: "fail", problems: ["variant 2: status 201: got 200"] });
});

Deno.test("runCase() runs steps on one router and a sequence at once", async () => {
  const steps = await run({
    steps: [{ expect: { status: 200 } }, { upstream: [{ status: 400, body: {} }] }],
    expect: { statuses: [200, 400], upstream_calls: 2 },
  });
  assert.deepEqual(steps, { kind: "pass" });
  const request = { method: "POST", path: "/v1/chat/completions", body_file: "req/chat.json" };
  const sequence = await run({
    sequence: { parallel: 3, request },
    expect: { statuses: [200, 200, 200], admitted_max: 3, usage_records: 3 },
  });
  assert.deepEqual(sequence, { kind: "pass" });
});

Deno.test("runCase() gives the first call the first answer, and the last to all that follow", async () => {
  const result = await run({
    upstream: [{ bytes: 0, end: "reset" }, { file: "res/chat.json" }],
    steps: [{}, {}],
    expect: { statuses: [200, 200], upstream_calls: 4 },
  });
  assert.deepEqual(result, { kind: "pass" });
});

Deno.test("runCase() says of a case that it cannot be run", async () => {
  const result = await run({ request: { method: "POST", path: "/", body_file: "req/none.json" } });
  assert.ok(result.kind === "fail" && /cannot be run/.test(result.problems[0] ?? ""));
});
