/**
 * What the adapters say against what the engines understand: flags, variables and metrics as the
 * scripts in `tools/engine_flags/` read them out of vLLM's and SGLang's own source, and as llama.cpp's
 * server tells them. A list of another version beside these is tried as well.
 */
import { ok } from "node:assert/strict";
import type { ShardSpec } from "../core/shard/shard.ts";
import { aSpec } from "../core/shard/shard_fake.ts";
import { adapterOf } from "./adapters.ts";

const LISTS = new URL("../../tests/fixtures/engines/", import.meta.url);

/** Layouts that together make an adapter say all that it can. */
const LAYOUTS: readonly Partial<ShardSpec>[] = [
  { tp: 2 },
  { tp: 1, dp: 2 },
  { tp: 8, pp: 2, shardCount: 2 },
  { tp: 8, pp: 2, shardCount: 2, rank: 1 },
  { tp: 2, dp: 4, shardCount: 2 },
  { tp: 2, dp: 4, shardCount: 2, rank: 1 },
  { tp: 2, dp: 4, shardCount: 2, launchMode: "ray" },
  { source: "/models/m.gguf", gpus: [{ index: 0, uuid: "GPU-a" }] },
];

/** Of an HTTP client or the system, and no engine's own. */
const COMMON_VARIABLES = ["DO_NOT_TRACK", "RAY_ADDRESS", "RAY_USAGE_STATS_ENABLED"];

for (const { name } of Deno.readDirSync(LISTS)) {
  const [heading = "", ...lines] = Deno.readTextFileSync(new URL(name, LISTS)).trim().split("\n");
  const [, engine = "", version = ""] = /^# (\w+) (\S+): /.exec(heading) ?? [];
  const known = new Set(lines);

  Deno.test(`every flag and variable that ${engine} is given is one of ${version}`, () => {
    const said = LAYOUTS.flatMap((layout) => saidTo(engine, layout));
    ok(said.length >= 8, "the layouts make it say something");
    for (const word of said) ok(known.has(word), `${engine} ${version} does not know ${word}`);
  });

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

function saidTo(engine: string, layout: Partial<ShardSpec>): readonly string[] {
  const built = adapterOf(engine)?.build({
    spec: aSpec({ engine, source: "/models/m.gguf", portCount: 256, ...layout }),
    engine: { name: engine, path: `/opt/${engine}/bin/${engine}`, version: "1" },
    address: "10.0.0.1",
    apiKey: (layout.rank ?? 0) === 0 ? "sk-heddle-replica-key" : "",
    modelDirs: [],
  });
  if (built?.kind !== "processes") return [];
  // Ray's own commands are Ray's to understand.
  return built.processes.filter(({ name }) => name === "server").flatMap(({ argv, env }) => {
    const own = argv.slice(Math.max(0, argv.findLastIndex((word) => word === "serve")));
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
