import { match, ok } from "node:assert/strict";
import { join } from "node:path";
import { Child } from "./children.ts";

const TIMING = { delay: 1, delayMax: 5, shortLife: 400 };

async function program(script: string) {
  const folder = await Deno.makeTempDir({ prefix: "heddle-child-" });
  const launcher = join(folder, "program");
  await Deno.writeTextFile(launcher, `#!/bin/sh\n${script}\n`, { mode: 0o700 });
  const logFile = join(folder, "log");
  return {
    spec: { label: "program", launcher, args: [], env: { COUNT: join(folder, "count") }, logFile },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

Deno.test("Child gives up on a program that never works, with its last words", async () => {
  await using made = await program('echo "no such thing" >>"$HEDDLE_LOG_FILE"; exit 3');
  const child = new Child(made.spec, () => {}, TIMING);
  match(await child.gaveUp, /program does not stay up: it ended with code 3.*no such thing/);
  await child.stop();
});

Deno.test("Child goes on starting a program that has worked, however often it ends", async () => {
  // The first life is a long one; all later ones are short.
  await using made = await program(
    '[ -e "$COUNT" ] || { : >"$COUNT"; sleep 0.5; }; kill -KILL $$',
  );
  const starts = Promise.withResolvers<void>();
  let ends = 0;
  const child = new Child(made.spec, () => ++ends === 6 ? starts.resolve() : undefined, TIMING);
  const first = await Promise.race([starts.promise, child.gaveUp]);
  ok(first === undefined, `gave up: ${first}`);
  await child.stop();
});
