/** What a terminal that is not UTF-8 gets, and which one that is. */
import { deepEqual, equal } from "node:assert/strict";
import { printsUtf8, toAscii } from "./io.ts";

Deno.test("printsUtf8() goes by the first of LC_ALL, LC_CTYPE and LANG that says something", () => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, boolean])[] = [
    [{}, true],
    [{ LANG: "" }, true],
    [{ LANG: "C" }, false],
    [{ LANG: "en_GB.UTF-8" }, true],
    [{ LANG: "C.utf8" }, true],
    [{ LC_CTYPE: "UTF-8" }, true],
    [{ LANG: "de_DE.UTF-8", LC_ALL: "POSIX" }, false],
    [{ LANG: "C", LC_CTYPE: "C.UTF-8" }, true],
    [{ LANG: "en_GB.UTF-8", LC_CTYPE: "", LC_ALL: "" }, true],
    [{ LANG: "de_DE@euro" }, false],
    [{ LANG: "ja_JP.eucJP" }, false],
  ];
  deepEqual(cases.map(([environment]) => printsUtf8((name) => environment[name])), [
    ...cases.map(([, expected]) => expected),
  ]);
});

Deno.test("toAscii() writes Heddle's own signs in as much room, and leaves others' words", () => {
  const text = "8× h100-80g  1–4  ready → gone: too lo…\n… and 3 more — naïve/模型";
  equal(toAscii(text), "8x h100-80g  1-4  ready > gone: too lo+\n+ and 3 more - naïve/模型");
  equal(toAscii(text).length, text.length);
});

/** Every sign beyond ASCII in the words of ctl has one. */
Deno.test("toAscii() knows every sign that ctl writes", async () => {
  const strange: string[] = [];
  for (const path of await sources(new URL(".", import.meta.url))) {
    // Not in comments.
    const code = (await Deno.readTextFile(path)).replaceAll(/\/\*[\s\S]*?\*\/|\/\/ .*/g, "");
    // deno-lint-ignore no-control-regex
    for (const [sign] of toAscii(code).matchAll(/[^\u0000-\u007f]/g)) {
      strange.push(`${path.pathname}: ${sign}`);
    }
  }
  deepEqual(strange, []);
});

async function sources(folder: URL): Promise<readonly URL[]> {
  const found: URL[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) found.push(...await sources(new URL(`${name}/`, folder)));
    else if (/(?<!_test|_fake)\.ts$/.test(name)) found.push(new URL(name, folder));
  }
  return found;
}
