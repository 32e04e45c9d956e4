import assert from "node:assert/strict";
import { FAULT_HELP, FaultSyntaxError, isProcessFault, parseFault } from "./fault.ts";
import { faultsOf, FaultWatch, streamAction } from "./fault_watch.ts";

const READ: readonly (readonly [spec: string, fault: object])[] = [
  ["hang", { kind: "hang", trigger: { on: "ready", at: 0 }, for_ms: 0 }],
  ["hang:at_ms=50,for_ms=9", { kind: "hang", trigger: { on: "ready", at: 50 }, for_ms: 9 }],
  [" kill:after_requests=3 ", {
    kind: "kill",
    trigger: { on: "requests", at: 3 },
    code: 137,
  }],
  ["crash:after_tokens=7,code=0", {
    kind: "crash",
    trigger: { on: "tokens", at: 7 },
    code: 0,
    linger_ms: 200,
  }],
  ["cut_stream:after_tokens=0,every=2", { kind: "cut_stream", after_tokens: 0, every: 2 }],
  ["end_early:done=false", { kind: "end_early", after_tokens: 3, every: 1, done: false }],
  ["die_loading:cause=nccl", { kind: "die_loading", at_ms: 300, code: 1, cause: "nccl" }],
  ["wrong_model:name=x", { kind: "wrong_model", trigger: { on: "ready", at: 0 }, name: "x" }],
];
for (const [spec, fault] of READ) {
  Deno.test(`parseFault() reads "${spec}"`, () => assert.deepEqual(parseFault(spec), fault));
}

const REFUSED: readonly (readonly [spec: string, why: RegExp])[] = [
  ["", /no kind ""/],
  ["hangs", /no kind "hangs"; there are slow_load/],
  ["toString", /no kind/],
  ["hang:now", /"now" is not key=value/],
  ["hang:code=1", /hang has no parameter "code"/],
  ["hang:for_ms=soon", /for_ms must be a whole number, not "soon"/],
  ["kill:at_ms=1,after_tokens=2", /more than one trigger/],
  ["die_loading:cause=bad", /cause must be one of oom,/],
];
for (const [spec, why] of REFUSED) {
  Deno.test(`parseFault() refuses "${spec}"`, () => {
    assert.throws(() => parseFault(spec), (error) => {
      assert.ok(error instanceof FaultSyntaxError);
      assert.match(error.message, why);
      return true;
    });
  });
}

Deno.test("every kind of fault in the help can be read, with every parameter it names", () => {
  const values: Record<string, string> = {
    "TRIGGER": "after_requests=2",
    "cause=CAUSE": "cause=disk",
    "done=true|false": "done=true",
    "name=X": "name=x",
  };
  for (const line of FAULT_HELP) {
    const spec = line.split(/\s/)[0]?.replace(/[^:,]+/g, (part) => values[part] ?? part) ?? "";
    parseFault(spec.replaceAll("=N", "=2"));
  }
});

Deno.test("FaultWatch lets each fault strike once, when its trigger is reached", () => {
  const specs = ["hang:at_ms=100", "kill:after_requests=2", "crash:after_tokens=5"];
  const watch = new FaultWatch(specs.map(parseFault).filter(isProcessFault));
  assert.equal(watch.nextElapsedMs(), 100);
  assert.deepEqual(watch.elapsed(99), []);
  assert.deepEqual(watch.elapsed(100).map(({ kind }) => kind), ["hang"]);
  assert.deepEqual(watch.elapsed(101), []);
  assert.equal(watch.nextElapsedMs(), undefined);
  assert.deepEqual(watch.request(), []);
  assert.deepEqual(watch.request().map(({ kind }) => kind), ["kill"]);
  assert.deepEqual(watch.tokens(4), []);
  assert.deepEqual(watch.tokens(3).map(({ kind }) => kind), ["crash"]);
  assert.deepEqual(watch.tokens(99), []);
});

Deno.test("faultsOf() strikes every n-th request, and streamAction() at its token", () => {
  const faults = [
    { kind: "cut_stream", after_tokens: 2, every: 3 },
    { kind: "stall", after_tokens: 1, every: 1, ms: 5 },
  ] as const;
  assert.deepEqual(faultsOf(faults, 2).map(({ kind }) => kind), ["stall"]);
  const third = faultsOf(faults, 3);
  const actions = [0, 1, 2, 3].map((tokens) => streamAction(third, tokens).kind);
  assert.deepEqual(actions, ["continue", "stall", "reset", "reset"]);
  assert.equal(streamAction([{ kind: "error_first", every: 1 }], 0).kind, "error");
});
