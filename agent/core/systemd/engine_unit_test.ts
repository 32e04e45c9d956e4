import { deepEqual, equal, ok, throws } from "node:assert/strict";
import * as fc from "fast-check";
import { ENGINES, type EngineUnit, handleOf, startArguments, unitOf } from "./engine_unit.ts";

const UNIT: EngineUnit = {
  handle: "demo-1-2-0-abcdef01",
  name: "server",
  argv: ["/opt/vllm/bin/python", "serve"],
  variables: ["HOME", "VLLM_API_KEY"],
  envFile: "/var/lib/heddle/agent/shards/s-1/run-x/env",
  logFile: "/var/lib/heddle/agent/shards/s-1/run-x/log",
  exitFile: "/var/lib/heddle/agent/shards/s-1/run-x/exit",
  user: "heddle-engine",
  sibling: undefined,
};

function property(args: readonly string[], name: string): readonly string[] {
  const head = `--property=${name}=`;
  return args.filter((arg) => arg.startsWith(head)).map((arg) => arg.slice(head.length));
}

/** What systemd makes of one argument when it runs it: variables are replaced, `$$` is a dollar. */
function expanded(word: string): string {
  return word.replaceAll(/\$\$|\$\{\w*\}|\$\w+/g, (found) => found === "$$" ? "$" : "");
}

Deno.test("unitOf() and handleOf() undo each other, and refuse what names anything else", () => {
  equal(unitOf(ENGINES, "demo-1-2-0-ab"), "heddle-engine-demo-1-2-0-ab.service");
  equal(handleOf(ENGINES, "heddle-engine-demo-1-2-0-ab.service"), "demo-1-2-0-ab");
  equal(handleOf(ENGINES, "sshd.service"), undefined);
  equal(handleOf(ENGINES, "heddle-engine-x.scope"), undefined);
  for (const wrong of ["", "*", "a b", "../x", "a.service", "a;b", "x".repeat(201)]) {
    throws(() => unitOf(ENGINES, wrong), /no handle/);
  }
});

Deno.test("startArguments() tells no value of the environment", () => {
  const args = startArguments(ENGINES, UNIT);
  deepEqual(property(args, "EnvironmentFile"), [UNIT.envFile]);
  ok(!args.some((arg) => /^(?:-E|--setenv)/.test(arg) || arg.includes("VLLM_API_KEY")));
  deepEqual(property(args, "Environment"), []);
});

Deno.test("startArguments() unsets what systemd would add, and nothing that was given", () => {
  const unset = property(startArguments(ENGINES, UNIT), "UnsetEnvironment")[0]?.split(" ") ?? [];
  ok(unset.includes("USER") && unset.includes("LANG") && unset.includes("PATH"));
  ok(!unset.includes("HOME"));
});

Deno.test("startArguments() asks for what RDMA and the end of an engine need", () => {
  const args = startArguments(ENGINES, { ...UNIT, sibling: "heddle-engine-head.service" });
  deepEqual(property(args, "LimitMEMLOCK"), ["infinity"]);
  deepEqual(property(args, "KillMode"), ["mixed"]);
  deepEqual(property(args, "OOMPolicy"), ["stop"]);
  deepEqual(property(args, "User"), ["heddle-engine"]);
  deepEqual(property(args, "JoinsNamespaceOf"), ["heddle-engine-head.service"]);
  ok(args.includes("--collect") && args.includes("--slice=heddle-engines.slice"));
});

// systemd 252 reads these differently from how it wrote them, at the next daemon-reload.
Deno.test("startArguments() has neither a dollar, a semicolon nor a prefix in ExecStopPost", () => {
  const [line = "$"] = property(startArguments(ENGINES, UNIT), "ExecStopPost");
  ok(!/[$;]/.test(line) && line.startsWith('"/bin/sh"'), line);
});

Deno.test("startArguments() passes any arguments on as they are", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom(..."a$ {};%\"'\\\n") })), (words) => {
      const args = startArguments(ENGINES, { ...UNIT, argv: ["/bin/engine", ...words] });
      const line = args.slice(args.indexOf("--") + 1);
      deepEqual(line.map(expanded), ["/bin/engine", ...words]);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("startArguments() runs a program whose path has a dollar", () => {
  const args = startArguments(ENGINES, { ...UNIT, argv: ["/opt/$x/engine", "$y"] });
  const line = args.slice(args.indexOf("--") + 1);
  equal(line[0], "/bin/sh");
  deepEqual(line.slice(3).map(expanded), ["sh", "/opt/$x/engine", "$y"]);
});
