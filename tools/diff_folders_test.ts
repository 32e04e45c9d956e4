import assert from "node:assert/strict";
import { diffFolders } from "./diff_folders.ts";

Deno.test("diffFolders() names what is missing, left over and different", async () => {
  const root = await Deno.makeTempDir({ prefix: "heddle-diff-" });
  try {
    for (
      const [path, text] of [
        ["a/same.ts", "1"],
        ["b/same.ts", "1"],
        ["a/v1/changed.ts", "1"],
        ["b/v1/changed.ts", "2"],
        ["a/old.ts", ""],
        ["b/v1/new.ts", ""],
      ]
    ) {
      await Deno.mkdir(`${root}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeTextFile(`${root}/${path}`, text ?? "");
    }
    assert.deepEqual(diffFolders(`${root}/a`, `${root}/b`), [
      "old.ts is left over",
      "v1/changed.ts differs",
      "v1/new.ts is missing",
    ]);
    assert.deepEqual(diffFolders(`${root}/a`, `${root}/a`), []);
    assert.deepEqual(diffFolders(`${root}/none`, `${root}/none`), []);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
