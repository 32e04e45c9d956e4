import { deepEqual, equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";

const LAUNCHER = fileURLToPath(new URL("../bin/heddle", import.meta.url));

async function heddle(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const { code, stdout, stderr } = await new Deno.Command(LAUNCHER, {
    args,
    env: { HEDDLE_DENO: Deno.execPath(), NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

const words = (text: string) => text.split("\n").filter((word) => word !== "");

Deno.test("complete proposes nouns, verbs beside a default verb, flags and their values", async () => {
  ok(words((await heddle("complete", "--", "")).out).includes("nodes"));
  deepEqual(words((await heddle("complete", "--", "nod")).out), ["nodes"]);
  deepEqual(words((await heddle("complete", "--", "nodes", "unc")).out), ["uncordon"]);
  ok(words((await heddle("complete", "--", "nodes", "--w")).out).includes("--watch"));
  deepEqual(words((await heddle("complete", "--", "orgs", "sh")).out), ["show"]);
  deepEqual(words((await heddle("complete", "--", "nodes", "-o", "y")).out), ["yaml"]);
  equal((await heddle("complete", "--", "no-such-noun", "x")).out, "");
});

Deno.test("help, a slip of the pen, and a shell that is not known", async () => {
  match((await heddle("help", "nodes")).out, /^USAGE\n {2}heddle nodes list /);
  const slip = await heddle("nodez");
  deepEqual([slip.code, slip.out], [2, ""]);
  match(slip.err, /did you mean `nodes`\?/);
  match((await heddle("completion", "bash")).out, /complete -o default -F _heddle heddle/);
  const unknown = await heddle("completion", "csh");
  equal(unknown.code, 2);
  match(unknown.err, /one of bash, zsh, fish/);
});
