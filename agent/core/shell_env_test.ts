import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { isVariableName, shellEnv, shellQuote } from "./shell_env.ts";

Deno.test("shellEnv() sorts, quotes, and leaves out names that no shell can export", () => {
  equal(
    shellEnv({ B: "it's", A: "1", "C-D": "x", "1E": "x" }),
    "export A='1'\nexport B='it'\\''s'\n",
  );
});

Deno.test("a POSIX shell reads back what shellEnv() wrote", async () => {
  const value = fc.string({ unit: "binary", maxLength: 40 }).map((text) =>
    text.replaceAll("\0", "").toWellFormed()
  );
  const values = fc.sample(value, 60);
  const env = Object.fromEntries(values.map((text, index) => [`V_${index}`, text]));
  const names = Object.keys(env).filter(isVariableName);
  const script = `${shellEnv(env)}\nprintf '%s\\0' ${names.map((name) => `"$${name}"`).join(" ")}`;
  const { stdout, code } = await new Deno.Command("/bin/sh", { args: ["-c", script] }).output();
  equal(code, 0);
  const read = new TextDecoder("utf-8", { ignoreBOM: true }).decode(stdout).split("\0").slice(
    0,
    -1,
  );
  deepEqual(read, names.map((name) => env[name]));
});

Deno.test("shellQuote() makes one word of anything", () => {
  equal(shellQuote("a b'c"), `'a b'\\''c'`);
  equal(shellQuote(""), "''");
});
