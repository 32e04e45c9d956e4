import { deepEqual, equal, match } from "node:assert/strict";
import { bundleProblems, withRequire } from "./bundle.ts";

Deno.test("bundleProblems() accepts what Deno itself brings", () => {
  const text = "var a=new Worker(import.meta.url,{type:'module'});class NotANewWorker{}";
  deepEqual(bundleProblems(text, ["node:http", "node:sqlite"]), []);
  deepEqual(bundleProblems("x=new Worker(`data:text/javascript,${y}`)", []), []);
});

Deno.test("bundleProblems() names what a release would look for in vain", () => {
  for (const specifier of ["npm:zod@4", "https://example.com/x.ts", "./y.js", "zod"]) {
    const [problem] = bundleProblems("", ["node:net", specifier]);
    match(problem ?? "", new RegExp(`imports "${specifier}"`));
  }
  for (const text of ["new Worker(new URL('./w.ts',import.meta.url))", "x=new Worker(u)"]) {
    equal(bundleProblems(text, []).length, 1, text);
  }
});

/** As Deno 2.9.6 writes it, minified. */
const HELPER = `(e=>typeof require<"u"?require:typeof Proxy<"u"?new Proxy(e,{get:(t,n)=>` +
  `(typeof require<"u"?require:t)[n]}):e)(function(e){if(typeof require<"u")return require.apply` +
  `(this,arguments);throw Error('Dynamic require of "'+e+'" is not supported')});`;

Deno.test("withRequire() gives packages a require, whatever the minifier has called it", async () => {
  for (const name of ["$t", "A", "r$"]) {
    const text = withRequire(
      `var ${name}=${HELPER}export const cwd=${name}("node:process").cwd;`,
    );
    deepEqual(bundleProblems(text, []), []);
    const file = await Deno.makeTempFile({ suffix: ".mjs" });
    try {
      await Deno.writeTextFile(file, text);
      const { cwd } = await import(`file://${file}`);
      equal(cwd(), Deno.cwd(), name);
    } finally {
      await Deno.remove(file);
    }
  }
  equal(bundleProblems(`var a=${HELPER}`, []).length, 1);
  equal(withRequire("var a=1;"), "var a=1;");
});
