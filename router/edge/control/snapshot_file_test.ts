import { equal } from "node:assert/strict";
import { join } from "node:path";
import { EMPTY_TABLE } from "../../core/fleet/table.ts";
import { SnapshotFile } from "./snapshot_file.ts";

Deno.test("SnapshotFile.load() goes without a snapshot that cannot be read, or is none", async () => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-snapshot-" });
  const path = join(folder, "snapshot.json");
  try {
    equal(await new SnapshotFile(folder).load(), undefined, "not there");
    for (const text of ["", "garbage{", "[]", '{"version":99,"confirmed_at_ms":1,"watch":{}}']) {
      await Deno.writeTextFile(path, text);
      equal(await new SnapshotFile(folder).load(), undefined, text);
    }
    await Deno.remove(path);
    await Deno.mkdir(path);
    equal(await new SnapshotFile(folder).load(), undefined, "a folder");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("SnapshotFile tries again to save what it could not, until it is closed", async () => {
  const parent = await Deno.makeTempDir({ prefix: "heddle-snapshot-" });
  const folder = join(parent, "state");
  const saved = Promise.withResolvers<void>();
  try {
    const file = new SnapshotFile(folder, 5);
    let tries = 0;
    file.save(() => {
      tries++;
      // The folder that was missing is there from the second try on.
      if (tries === 2) Deno.mkdirSync(folder);
      if (tries === 2) saved.resolve();
      return { table: EMPTY_TABLE, confirmedAtMs: 7 };
    });
    await saved.promise;
    await file.close();
    equal((await new SnapshotFile(folder).load())?.confirmedAtMs, 7);
    equal(tries, 2);
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
});
