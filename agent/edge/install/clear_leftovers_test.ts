import { deepEqual } from "node:assert/strict";
import { join } from "node:path";
import { clearLeftovers } from "./clear_leftovers.ts";

Deno.test("clearLeftovers() takes what killed runs left, and nothing else", async () => {
  const into = await Deno.makeTempDir();
  try {
    for (const name of ["llamacpp-b1", ".uv-cache", "mine", ".installing-llamacpp-b2/unpacked"]) {
      await Deno.mkdir(join(into, name), { recursive: true });
    }
    await Deno.symlink(join(into, "mine"), join(into, ".removing-vllm-0.1"));
    await clearLeftovers(into);
    const left = [...Deno.readDirSync(into)].map(({ name }) => name).sort();
    deepEqual(left, [".uv-cache", "llamacpp-b1", "mine"]);
    await clearLeftovers(join(into, "not there"));
  } finally {
    await Deno.remove(into, { recursive: true });
  }
});
