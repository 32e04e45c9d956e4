import assert from "node:assert/strict";
import { readCases, readLine } from "./read_cases.ts";

const CASE = {
  id: "X1",
  title: "t",
  request: { method: "POST", path: "/v1/x" },
  upstream: [{ status: 200 }],
  expect: { status: 200 },
};

function refused(change: Record<string, unknown>): string {
  const read = readLine(JSON.stringify({ ...CASE, ...change }), 7);
  assert.ok(read.kind === "refused", "it was read");
  assert.equal(read.id, "X1");
  return read.why;
}

Deno.test("readCases() refuses a file without a case", async () => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-cases-" });
  await Deno.writeTextFile(`${folder}/cases.jsonl`, "\n \n");
  const [line, ...more] = await readCases(folder);
  assert.ok(line?.kind === "refused" && /no case/.test(line.why));
  assert.equal(more.length, 0);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("readLine() reads a case", () => {
  assert.equal(readLine(JSON.stringify(CASE), 1).kind, "case");
});

const UNKNOWN: readonly [what: string, change: Record<string, unknown>, why: RegExp][] = [
  ["a key of the case", { note: "x" }, /note/],
  ["a key of expect", { expect: { stauts: 200 } }, /expect\.stauts: no check/],
  ["a key of a variant's expect", { variants: [{ expect: { stauts: 1 } }] }, /expect\.stauts/],
  ["a key of a step's expect", { steps: [{ expect: { stauts: 1 } }] }, /expect\.stauts/],
  ["a key of the request", { request: { ...CASE.request, body: {} } }, /body/],
  ["a key of upstream", { upstream: [{ delay: 1 }] }, /delay/],
  ["an end", { upstream: [{ end: "explode" }] }, /upstream\.0\.end/],
  ["a key of the client", { client: { disconnect: true } }, /disconnect/],
  ["a limit of the key", { setup: { key: { rps: 1 } } }, /rps/],
];

for (const [what, change, why] of UNKNOWN) {
  Deno.test(`readLine() refuses ${what} that it does not know`, () => {
    assert.match(refused(change), why);
  });
}

Deno.test("readLine() refuses what is not JSON, and names the line", () => {
  const read = readLine("{", 7);
  assert.deepEqual([read.kind, read.kind === "refused" && read.id], ["refused", "line 7"]);
});
