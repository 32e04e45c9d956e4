/** What takes something out of service asks first; where nobody can be asked it wants --yes. */
import { deepEqual, equal, match } from "node:assert/strict";
import { run } from "@stricli/core";
import { app } from "./app.ts";
import type { CtlContext } from "./command.ts";
import type { Ask } from "./io.ts";

/** It got as far as asking control. */
const REACHED = "control is asked";

async function said(args: readonly string[], ask: Ask): Promise<string> {
  let err = "";
  const process = {
    stdout: { write: () => {} },
    stderr: { write: (text: string) => void (err += text) },
    env: { NO_COLOR: "1" },
  };
  const context: CtlContext = {
    process,
    io: { terminal: false, color: false, out: () => {}, err: process.stderr.write },
    signal: new AbortController().signal,
    loadContext: () => Promise.reject(new Error(REACHED)),
    loadConfig: () => Promise.reject(new Error(REACHED)),
    folders: { authority: "", certificates: undefined },
    readStdin: () => Promise.resolve(""),
    bytes: { in: () => new Blob([]).stream(), out: () => {} },
    ask,
    fail: () => {},
  };
  await run(app, args, context);
  return err.trim();
}

const ASKING: readonly (readonly [string, RegExp])[] = [
  ["drain n", /^Drain node n\?/],
  ["nodes drain n", /^Drain node n\?/],
  ["nodes forget n", /^Forget node n\?/],
  ["replicas restart r", /^Replace replica r\?/],
  ["replicas stop r", /^Stop replica r\?/],
  ["weights remove n f", /^Remove f on n\?/],
  ["ca strike agent/n", /^Strike agent\/n\?/],
  ["keys rotate k --overlap 0s", /^End the secret of key k now\?/],
  ["keys revoke k", /^Revoke key k for good\?/],
];

for (const [line, question] of ASKING) {
  Deno.test(`${line}: asks, and does nothing without a yes`, async () => {
    const words = line.split(" ");
    const asked: string[] = [];
    const answer = (yes: boolean): Ask => (text) => {
      asked.push(text);
      return Promise.resolve(yes);
    };
    match(await said(words, undefined), /^Not done: .* say --yes$/);
    equal(await said(words, answer(false)), "Not done: it was not confirmed");
    equal(await said(words, answer(true)), REACHED);
    equal(asked.length, 2);
    match(asked[0] ?? "", question);
    equal(await said([...words, "--yes"], undefined), REACHED);
  });
}

Deno.test("what takes nothing away asks nothing", async () => {
  const lines = ["cordon n", "uncordon n", "keys rotate k", "keys rotate k --overlap 1h"];
  const answers = await Promise.all(lines.map((line) => said(line.split(" "), undefined)));
  deepEqual(answers, lines.map(() => REACHED));
});
