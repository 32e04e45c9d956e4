import { equal } from "node:assert/strict";
import { join } from "node:path";
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
