import { deepEqual, equal, match } from "node:assert/strict";
import { bundleProblems } from "./bundle.ts";

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
