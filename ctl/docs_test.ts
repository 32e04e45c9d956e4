import { deepEqual } from "node:assert/strict";
import { app } from "./app.ts";

type Target = typeof app.root;

/** "heddle nodes list" for every command that help shows. */
function commandsOf(target: Target, name: string): readonly string[] {
  if (!("getAllEntries" in target)) return [name];
  return target.getAllEntries().filter(({ hidden }) => !hidden)
    .flatMap((entry) =>
      commandsOf(entry.target, `${name} ${entry.name["convert-camel-to-kebab"]}`)
    );
}

Deno.test("docs/ctl.md names every command, and none that is not there", async () => {
  const page = await Deno.readTextFile(new URL("../docs/ctl.md", import.meta.url));
  const table = page.split(/^## /m).find((section) => section.startsWith("Commands")) ?? "";
  const named = [...table.matchAll(/`(heddle [a-z -]+)`/g)].map(([, command]) => command);
  deepEqual(named.toSorted(), commandsOf(app.root, "heddle").toSorted());
});
