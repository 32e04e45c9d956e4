import assert from "node:assert/strict";
import fc from "fast-check";
import { countJunit, failuresOf, formatCount, judge } from "./junit_count.ts";
import { ROOT } from "./repository.ts";
import { run, type RunResult } from "./run.ts";

/** What `deno test` writes for a run with every kind of ending, steps included. */
const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="6" failures="2" errors="0" time="0.076">
    <testsuite name="./a_test.ts" tests="6" disabled="2" errors="0" failures="2">
        <testcase name="ok &lt;&amp;&gt; &quot;x&quot;" classname="./a_test.ts" line="1" col="6">
        </testcase>
        <testcase name="says &lt;failure&gt; &lt;/testcase&gt;" classname="./a_test.ts"/>
        <testcase name="fails" classname="./a_test.ts" time="0.001" line="2" col="6">
            <failure message="Uncaught Error: &lt;skipped/&gt; no">Error: &lt;skipped/&gt;
    at file:///a_test.ts:2:34</failure>
        </testcase>
        <testcase name="ignored" classname="./a_test.ts" time="0.000" line="3" col="6">
            <skipped/>
        </testcase>
    </testsuite>
    <testsuite name="./b_test.ts" tests="2" disabled="0" errors="1" failures="0">
        <testcase name="steps &gt; s1" classname="./b_test.ts"><error message="x"/></testcase>
        <testcase name="steps &gt; s2" classname="./b_test.ts">
            <skipped/>
        </testcase>
    </testsuite>
</testsuites>
`;

Deno.test("countJunit() counts what deno test writes", () => {
  assert.deepEqual(countJunit(REPORT), { passed: 2, failed: 2, skipped: 2 });
});

Deno.test("failuresOf() says what failed where, and what was said of it", () => {
  assert.deepEqual(failuresOf(REPORT), [
    "./a_test.ts: fails\nError: <skipped/>\n    at file:///a_test.ts:2:34",
    "./b_test.ts: steps > s1\nx",
  ]);
});

Deno.test("countJunit() finds nothing in an empty report", () => {
  const none = { passed: 0, failed: 0, skipped: 0 };
  assert.deepEqual(countJunit(`<testsuites name="deno test" tests="0"></testsuites>`), none);
  assert.deepEqual(countJunit(`<testsuites tests="0"/>\n`), none);
});

Deno.test("countJunit() refuses a report that was cut short", () => {
  for (const text of ["", "<testsuites>", REPORT.slice(0, -20), "no XML at all"]) {
    assert.throws(() => countJunit(text), /no end/);
  }
});

Deno.test("countJunit() counts any mix of endings", () => {
  const bodies = { passed: "", failed: "<failure>x</failure>", skipped: "<skipped/>" };
  const kind = fc.constantFrom("passed" as const, "failed" as const, "skipped" as const);
  fc.assert(fc.property(fc.array(kind), (kinds) => {
    const cases = kinds.map((k, i) => `<testcase name="t${i}">${bodies[k]}</testcase>`).join("");
    const count = countJunit(`<testsuites><testsuite>${cases}</testsuite></testsuites>`);
    for (const k of ["passed", "failed", "skipped"] as const) {
      assert.equal(count[k], kinds.filter((other) => other === k).length);
    }
  }));
});

Deno.test("judge() adds the failure that a report is silent about", () => {
  const fine = { passed: 3, failed: 0, skipped: 1 };
  assert.deepEqual(judge(fine, 0), fine);
  assert.equal(judge(fine, 1).failed, 1);
  assert.equal(judge({ ...fine, failed: 2 }, 1).failed, 2);
  assert.equal(judge({ passed: 0, failed: 0, skipped: 4 }, 0).failed, 1);
});

Deno.test("formatCount() names skipped tests only when there are any", () => {
  assert.equal(formatCount({ passed: 3, failed: 0, skipped: 0 }), "3 passed, 0 failed");
  assert.equal(formatCount({ passed: 3, failed: 1, skipped: 2 }), "3 passed, 1 failed, 2 skipped");
});

function count(...args: string[]): Promise<RunResult> {
  return run(Deno.execPath(), {
    args: ["run", "--quiet", "-P=tools", "tools/junit_count.ts", ...args],
    cwd: ROOT,
  });
}

Deno.test("junit_count.ts fails for a failure, a bad status, no test, no report, no arguments", async () => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-junit-" });
  const write = async (name: string, cases: string): Promise<string> => {
    const path = `${folder}/${name}.xml`;
    await Deno.writeTextFile(path, `<testsuites><testsuite>${cases}</testsuite></testsuites>`);
    return path;
  };
  try {
    const good = await write("good", `<testcase name="a"></testcase>`);
    const bad = await write("bad", `<testcase name="a"><failure/></testcase>`);
    const none = await write("none", "");
    const said = async (...args: string[]): Promise<[boolean, string | undefined]> => {
      const { ok, output } = await count(...args);
      return [ok, output.trimEnd().split("\n").at(-1)];
    };
    assert.deepEqual(await said(good, "--status", "0"), [true, "1 passed, 0 failed"]);
    assert.deepEqual(await said(good, "--status", "1"), [false, "1 passed, 1 failed"]);
    assert.deepEqual(await said(bad, "--status", "1"), [false, "0 passed, 1 failed"]);
    assert.deepEqual(await said(none, "--status", "0"), [false, "0 passed, 1 failed"]);
    assert.deepEqual(await said(`${folder}/x.xml`, "--status", "0"), [false, "0 passed, 1 failed"]);
    assert.equal((await count(good)).ok, false);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
