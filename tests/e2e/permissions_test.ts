/**
 * Every program is confined: started through its own launcher, with a probe in the place of its
 * entry file, it is refused what it has no business with.
 */
import { deepEqual } from "node:assert/strict";
import { join } from "node:path";
import { PROGRAMS } from "../../tools/build/program.ts";
import { ROOT } from "./heddle.ts";
import { demandRefused, probe } from "./permission_probe.ts";

for (const program of PROGRAMS) {
  Deno.test(`${program.room} may do nothing beyond its permission set`, async () => {
    demandRefused(await probe(program, { launchers: { kind: "repository" } }));
  });
}

Deno.test("no launcher and no task asks for every permission", async () => {
  const wide = /--allow-all|(^|\s)-A(\s|$)/m;
  const found: string[] = [];
  for await (const entry of Deno.readDir(join(ROOT, "bin"))) {
    const text = await Deno.readTextFile(join(ROOT, "bin", entry.name));
    if (text.includes("HEDDLE_DENO") && wide.test(text)) found.push(entry.name);
  }
  const config = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  for (const [name, task] of Object.entries(config.tasks)) {
    if (wide.test(JSON.stringify(task))) found.push(name);
  }
  deepEqual(found, []);
});
