import { equal } from "node:assert/strict";
import { makeModelFolders } from "./model_folders.ts";

Deno.test("makeModelFolders() makes what is missing, and leaves what is there as it is", async () => {
  const root = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${root}/there`, { mode: 0o700 });
    await Deno.writeTextFile(`${root}/file`, "");
    await makeModelFolders([`${root}/new/models`, `${root}/there`, `${root}/file/below`]);
    equal((await Deno.stat(`${root}/new/models`)).isDirectory, true);
    equal(((await Deno.stat(`${root}/there`)).mode ?? 0) & 0o777, 0o700);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test({
  name: "makeModelFolders() asks for nothing that it may not",
  permissions: { write: false },
  fn: () => makeModelFolders(["/var/lib/heddle-of-nobody"]),
});
