import assert from "node:assert/strict";
import { ROOT } from "../repository.ts";
import { run } from "../run.ts";

const TYPES = "proto/heddle/v1/types.proto";

/** A checkout of its own with one commit on main, so that definitions can be broken in it. */
async function checkout(): Promise<string> {
  const root = await Deno.makeTempDir({ prefix: "heddle-generate-" });
  for (const path of ["proto", "tools", "common", "deno.json", "deno.lock"]) {
    assert.ok((await run("cp", { args: ["-R", `${ROOT}/${path}`, root], cwd: ROOT })).ok);
  }
  assert.ok((await run("git", { args: ["init", "-q", "-b", "main"], cwd: root })).ok);
  await commit(root);
  return root;
}

async function commit(root: string): Promise<void> {
  const author = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  for (const args of [["add", "proto"], [...author, "commit", "-q", "--no-verify", "-m", "base"]]) {
    const { ok, output } = await run("git", { args, cwd: root });
    assert.ok(ok, output);
  }
}

/** What `--check` says about the definitions after `change` was made to types.proto. */
async function checked(
  root: string,
  change: (text: string) => string,
): Promise<{ ok: boolean; output: string }> {
  const before = await Deno.readTextFile(`${root}/${TYPES}`);
  await Deno.writeTextFile(`${root}/${TYPES}`, change(before));
  try {
    return await run(Deno.execPath(), {
      args: ["run", "--quiet", "-P=tools", "tools/proto/generate.ts", "--check"],
      cwd: root,
    });
  } finally {
    await Deno.writeTextFile(`${root}/${TYPES}`, before);
  }
}

Deno.test("deno task proto --check tells good definitions from each kind of bad ones", async (t) => {
  const root = await checkout();
  try {
    await t.step("the committed ones pass", async () => {
      const { ok, output } = await checked(root, (text) => text);
      assert.ok(ok, output);
    });
    await t.step("code that was not regenerated is named", async () => {
      const { ok, output } = await checked(root, (text) => `${text}\nmessage Extra {}\n`);
      assert.ok(!ok);
      assert.match(output, /types_pb\.ts differs\. Run: deno task proto/);
    });
    await t.step("a lint breach is named with its line", async () => {
      const { ok, output } = await checked(root, (text) => `${text}\nmessage bad_name {}\n`);
      assert.ok(!ok);
      assert.match(output, /types\.proto:\d+:\d+:.*bad_name/);
    });
    await t.step("a message that went away is a break", async () => {
      const before = await Deno.readTextFile(`${root}/${TYPES}`);
      await Deno.writeTextFile(`${root}/${TYPES}`, `${before}\nmessage Doomed {}\n`);
      await commit(root);
      const { ok, output } = await checked(root, () => before);
      assert.ok(!ok);
      assert.match(output, /older peers would misread it[^]*Doomed/);
    });
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("deno task proto --check goes on without history to compare with", async () => {
  const root = await checkout();
  try {
    await Deno.remove(`${root}/.git`, { recursive: true });
    const { ok, output } = await checked(root, (text) => text);
    assert.ok(ok, output);
    assert.match(output, /breaking changes not checked/);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
