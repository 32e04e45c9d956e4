/** Wrong command lines: what is said of them, and that nothing is asked of control. */
import { deepEqual } from "node:assert/strict";
import { ExitCode } from "@stricli/core";
import { runApp } from "./testing/app_fake.ts";

const WRONG = [
  [
    "usage --by nix",
    'Wrong value for by: want key, project, organisation, model, hour, day, pool, it is "nix"',
  ],
  [
    "usage --by key,nix",
    'Wrong value for by: want key, project, organisation, model, hour, day, pool, it is "nix"',
  ],
  ["logs s --tail x", 'Wrong value for tail: want a whole number from 0 to 10000, it is "x"'],
  ["limits set acme --rpm x", 'want a whole number or none for --rpm, it is "x"'],
  ["capacity --apply", "--apply wants the model whose weights it sets"],
  ["models scale m", "Cannot scale m: want a number, or --clear"],
  ["nodes label n x", 'Cannot read label "x": want key=value, or key- to take it off'],
] as const;

Deno.test("a wrong command line is said once, in a sentence, and is the caller's fault", async () => {
  for (const [line, sentence] of WRONG) {
    const { err, code } = await runApp(line.split(" "));
    deepEqual([line, err, code], [line, `${sentence}\n`, ExitCode.InvalidArgument]);
  }
});
