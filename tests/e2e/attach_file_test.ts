/** heddle-attach as one file: it runs where there is nothing but a shell, tar and gzip. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { build } from "./built_release.ts";
import { type Finished, runCommand } from "./heddle.ts";

/** With no variables but these, as on a box. */
function bare(file: string, ...args: readonly string[]): Promise<Finished> {
  return runCommand("/usr/bin/env", ["-i", "PATH=/usr/bin:/bin", file, ...args]);
}

Deno.test("the file for rented boxes brings its runtime, and is the same from the same sources", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-attach-file-" });
  try {
    const out = join(folder, "out");
    await build(["--attach", "--out", out]);
    const names = [...Deno.readDirSync(out)].map(({ name }) => name).sort();
    const [sums = "", name = ""] = names;
    equal(sums, "SHA256SUMS");
    match(name, /^heddle-attach-\d+\.\d+\.\d+\S*-(x64|arm64)$/);
    const bytes = await Deno.readFile(join(out, name));
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    equal(await Deno.readTextFile(join(out, sums)), `${sha256}  ${name}\n`);
    const box = join(folder, "box of mine");
    await Deno.mkdir(box);
    const file = join(box, "heddle-agent");
    await Deno.copyFile(join(out, name), file);
    await Deno.chmod(file, 0o700);
    await t.step("two that start at once both run, and unpack it once", async () => {
      const both = await Promise.all([bare(file, "--version"), bare(file, "--version")]);
      for (const { code, stdout, stderr } of both) {
        equal(code, 0, stderr);
        match(stdout, /^heddle-attach \d/);
      }
      const parts = [...Deno.readDirSync(box)].filter(({ isDirectory }) => isDirectory);
      match(parts.map(({ name }) => name).sort()[0] ?? "", /^heddle-agent\.[0-9a-f]{12}\.parts$/);
    });
    await t.step("it says what it lacks, with its own code, and keeps its arguments", async () => {
      const { code, stderr } = await bare(file, "attach");
      equal(code, 2, stderr);
      match(stderr, /HEDDLE_ENGINE_ID/);
      const { stdout } = await bare(
        file,
        "script",
        "sidecar",
        "--x64",
        `https://a/b#sha256=${sha256}`,
      );
      match(stdout, new RegExp(`heddle_x64_sha256='${sha256}'`));
    });
    await t.step("one that was cut off says so and runs nothing", async () => {
      const cut = join(folder, "cut");
      await Deno.writeFile(cut, bytes.subarray(0, bytes.length / 2), { mode: 0o755 });
      const { code, stderr, stdout } = await bare(cut, "--version");
      deepEqual([code, stdout], [1, ""]);
      match(stderr, /cannot unpack itself/);
      deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name).sort(), [
        ...["box of mine", "cut", "out"],
      ]);
    });
    await t.step("built again it is the same, and nothing else is written over", async () => {
      await build(["--attach", "--out", out]);
      deepEqual(await Deno.readFile(join(out, name)), bytes);
      await rejects(build(["--attach", "--out", folder]), /wants to hold nothing but/);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
