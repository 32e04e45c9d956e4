/** What takes something out of service asks first; where nobody can be asked it wants --yes. */
import { deepEqual, equal, match } from "node:assert/strict";
import type { Ask } from "./io.ts";
import { REACHED, runApp } from "./testing/app_fake.ts";

async function said(args: readonly string[], ask: Ask): Promise<string> {
  return (await runApp(args, { ask })).err.trim();
}

const ASKING: readonly (readonly [string, RegExp])[] = [
  ["nodes forget n", /^Forget node n\?/],
  ["replicas restart r", /^Replace replica r\?/],
  ["replicas stop r", /^Stop replica r\?/],
  ["ca strike agent/n", /^Strike agent\/n\?/],
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
