import { deepEqual, equal } from "node:assert/strict";
import { ROOT } from "../repository.ts";
import { DENO_VERSION } from "./runtime.ts";
import { filesBelow, sha256File, writeSums } from "./sums.ts";

Deno.test("releases are built with the Deno that everything is tested with", async () => {
  equal(Deno.version.deno, DENO_VERSION);
  const script = await Deno.readTextFile(`${ROOT}/.ci/run`);
  deepEqual([...new Set(script.match(/deno@[\d.]+/g))], [`deno@${DENO_VERSION}`]);
});

Deno.test("writeSums() lists every file but itself, in one order", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/b/c`, { recursive: true });
    for (const path of ["z", "b/c/d", "b/a b", "SHA256SUMS"]) {
      await Deno.writeTextFile(`${folder}/${path}`, path);
    }
    deepEqual(filesBelow(folder), ["SHA256SUMS", "b/a b", "b/c/d", "z"]);
    await writeSums(folder);
    const lines = (await Deno.readTextFile(`${folder}/SHA256SUMS`)).trimEnd().split("\n");
    deepEqual(lines.map((line) => line.slice(64)), ["  b/a b", "  b/c/d", "  z"]);
    // Of "z", by another hand.
    equal(lines[2]?.slice(0, 64), await sha256File(`${folder}/z`));
    equal(
      lines[2]?.slice(0, 64),
      "594e519ae499312b29433b7dd8a97ff068defcba9755b6d5d00e84c524d67b06",
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
