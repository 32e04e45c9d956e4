/**
 * What the adapters say against what the engines understand: flags, variables and metrics as the
 * scripts in `tools/engine_flags/` read them out of vLLM's and SGLang's own source, and as llama.cpp's
 * server tells them. A list of another version beside these is tried as well.
 */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { ShardSpec } from "../core/shard/shard.ts";
import { adapterOf } from "./adapters.ts";
import { CAME, WENT } from "./llamacpp_flags.ts";
import { buildFor, type Installed, LAYOUTS } from "./layouts_fake.ts";

const LISTS = new URL("../../tests/fixtures/engines/", import.meta.url);

/** Of an HTTP client or the system, and no engine's own. */
const COMMON_VARIABLES = ["DO_NOT_TRACK", "RAY_ADDRESS", "RAY_USAGE_STATS_ENABLED"];

for (const { name } of Deno.readDirSync(LISTS)) {
  const [heading = "", ...lines] = Deno.readTextFileSync(new URL(name, LISTS)).trim().split("\n");
  const [, engine = "", version = ""] = /^# (\w+) (\S+): /.exec(heading) ?? [];
  const known = new Set(lines);
  // Of older versions only the flags are written down.
  const whole = lines.some((line) => !line.startsWith("-"));

  Deno.test(`every flag and variable that ${engine} is given is one of ${version}`, () => {
    const said = LAYOUTS.flatMap((layout) => saidTo({ engine, version }, layout))
      .filter((word) => whole || word.startsWith("-"));
    // One that is too old for all of it is refused; see below.
    ok(said.length >= 8 || !whole, "the layouts make it say something");
    for (const word of said) ok(known.has(word), `${engine} ${version} does not know ${word}`);
  });

  if (!whole) continue;

  Deno.test(`every metric that is read of ${engine} has a name of ${version}`, () => {
    const { running = [], waiting = [], kvUsage = [], progress = [] } = adapterOf(engine)?.load ??
      {};
    // llama.cpp has nothing to say of its cache any more. What is counted is added up: each must be.
    const usage = engine === "llamacpp" ? [] : [kvUsage];
    for (const names of [running, waiting, ...usage, ...progress.map((each) => [each])]) {
      ok(names.some((each) => hasMetric(known, each)), `${version} has none of ${names.join()}`);
    }
  });
}

function saidTo(installed: Installed, layout: Partial<ShardSpec>): readonly string[] {
  const built = buildFor(installed, layout);
  if (built?.kind !== "processes") return [];
  // Ray's own commands are Ray's to understand.
  return built.processes.filter(({ name }) => name === "server").flatMap(({ argv, env }) => {
    // What is before the command is Python's.
    const own = argv.slice(
      argv.findIndex((word) => /^(?:serve|sglang\.launch_server)$/.test(word)) + 1,
    );
    return [
      ...own.filter((word) => word.startsWith("-")).map((word) => word.replace(/=.*/, "")),
      ...Object.keys(env).filter((variable) => !COMMON_VARIABLES.includes(variable)),
    ];
  });
}

/** A counter's samples end in `_total`, and a histogram's number of samples in `_count`. */
function hasMetric(known: ReadonlySet<string>, name: string): boolean {
  return known.has(name) || known.has(name.replace(/_(?:total|count)$/, ""));
}

Deno.test("an engine that is too old for a layout is refused, with the version that is not", () => {
  const two = { tp: 8, pp: 2, shardCount: 2 };
  const cases: [engine: string, version: string, layout: Partial<ShardSpec>, RegExp | undefined][] =
    [
      ["vllm", "0.11.0", two, /vllm 0\.11\.0: more than one node without .* since 0\.11\.1/],
      ["vllm", "0.11.1rc1", two, undefined],
      ["vllm", "0.11.0", { ...two, launchMode: "ray" }, undefined],
      ["vllm", "0.8.5", { dp: 4, shardCount: 2 }, /copies on more than one node .* since 0\.9\.0/],
      ["vllm", "0.9.0", { dp: 2, launchMode: "ray" }, /--data-parallel-backend/],
      ["vllm", "0.1.dev1+g1234", two, undefined],
      ["sglang", "0.4.8", {}, /--nccl-port, which sglang has since 0\.4\.9/],
      ["sglang", "0.5.3", {}, undefined],
      ["llamacpp", "4000", {}, /llamacpp 4000: it is not known to read the replica's key/],
      ["llamacpp", "b4231", {}, undefined],
      ["llamacpp", "0", { args: ["--load-mode", "none"] }, undefined],
      ["llamacpp", "0.6.0-dev", { args: ["--no-mmap"] }, undefined],
      ["llamacpp", "9093", { args: ["--load-mode=none"] }, /--load-mode, which .* since 10434/],
      ["llamacpp", "10000", { args: ["--load-mode", "none"] }, undefined],
      ["llamacpp", "10830", { args: ["--no-mmap"] }, undefined],
    ];
  for (const [engine, version, layout, words] of cases) {
    const built = buildFor({ engine, version }, layout);
    if (words === undefined) equal(built?.kind, "processes", `${engine} ${version}`);
    else {
      ok(built?.kind === "refused");
      equal(built.reason, "engine_too_old");
      match(built.message, words);
    }
  }
});

Deno.test("a flag that the installed llama.cpp has no more is refused, with what says the same now", () => {
  const built = buildFor({ engine: "llamacpp", version: "11434" }, { args: ["--no-mmap"] });
  ok(built?.kind === "refused");
  equal(built.reason, "engine_too_new");
  match(built.message, /--no-mmap, which llamacpp has no more since 10950 .* --load-mode none/);
});

Deno.test("an old llama.cpp is not given --offline, and every other one is", () => {
  const argvOf = (version: string) => {
    const built = buildFor({ engine: "llamacpp", version }, {});
    return built?.kind === "processes" ? built.processes[0]?.argv ?? [] : [];
  };
  equal(argvOf("5335").includes("--offline"), false);
  for (const version of ["5937", "b11069", "0"]) ok(argvOf(version).includes("--offline"), version);
});

Deno.test("the table of llama.cpp's flags is what its own lists say", () => {
  const flagsOf = (build: number) =>
    new Set(
      Deno.readTextFileSync(new URL(`llamacpp-${build}.txt`, LISTS)).split("\n")
        .filter((line) => line.startsWith("-")),
    );
  const [older, newer] = [flagsOf(10_434), flagsOf(11_434)];
  for (const { lacking, has, flags } of CAME) {
    for (const flag of flags) {
      if (has === 10_434) ok(older.has(flag), flag);
      else ok(lacking === 10_434 && !older.has(flag) && newer.has(flag), flag);
    }
  }
  const gone = [...older].filter((flag) => !newer.has(flag));
  deepEqual(WENT.flatMap(({ flags }) => Object.keys(flags)).sort(), gone.sort());
  const came = CAME.filter(({ has }) => has === 11_434).flatMap(({ flags }) => flags);
  deepEqual([...newer].filter((flag) => !older.has(flag)).sort(), [...came].sort());
});
