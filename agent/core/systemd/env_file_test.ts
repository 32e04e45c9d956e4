import { deepEqual, equal } from "node:assert/strict";
import * as fc from "fast-check";
import { environmentFile } from "./env_file.ts";

Deno.test("environmentFile() quotes what systemd would take for something else", () => {
  equal(
    environmentFile({ B: 'a "b" `c` $d \\e', A: "two\nlines", "not a name": "x", C: "nul\0x" }),
    'A="two\nlines"\nB="a \\"b\\" \\`c\\` \\$d \\\\e"\nC="nul"\n',
  );
});

/** Reads the file as `man systemd.exec` has it: only double quotes, and four escapes in them. */
function read(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name = "", quoted = ""] of text.matchAll(/(\w+)="((?:[^"\\]|\\[^])*)"\n/g)) {
    found[name] = quoted.replaceAll(
      /\\([^])/g,
      (escape, char) => char === "\n" ? "" : '"\\`$'.includes(char) ? char : escape,
    );
  }
  return found;
}

Deno.test("environmentFile() loses nothing that an environment can hold", () => {
  const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,5}$/);
  const value = fc.string({ unit: fc.constantFrom(..."ab \t\n\"'`$\\=#;ü") });
  fc.assert(
    fc.property(fc.dictionary(name, value), (env) => {
      deepEqual(read(environmentFile(env)), { ...env });
    }),
    { numRuns: 2_000 },
  );
});
