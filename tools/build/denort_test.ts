import { equal, match } from "node:assert/strict";
import { explainCompileFailure } from "./denort.ts";

// As Deno 2.9.6 said it where its releases were out of reach.
const OFFLINE = `Cannot build: "deno compile" failed:
error: Writing deno compile executable to temporary file '/tmp/heddle-agent.tmp-cc78036b5fa38aa6'

Caused by:
    0: Setting up base binary.
    1: error sending request for url (https://…/denort-x86_64-unknown-linux-gnu.zip): client error (Connect): dns error`;

Deno.test("a build that cannot fetch the executables' runtime says how to do without", () => {
  const told = explainCompileFailure(OFFLINE, "aarch64");
  equal(told.startsWith(OFFLINE), true);
  match(told, /denort-aarch64-unknown-linux-gnu\.zip/);
  match(told, /DENORT_BIN=/);
});

Deno.test("what else goes wrong is told as it was", () => {
  const words = 'Cannot build: "deno compile" failed:\nerror: Module not found';
  equal(explainCompileFailure(words, "x86_64"), words);
});
