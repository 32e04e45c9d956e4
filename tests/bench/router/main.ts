/**
 * `deno task bench:router`: what a gateway adds to an engine's answers. Every gateway is measured in
 * the same run on the same engine, and against no gateway at all.
 *
 *   --gateways direct,nginx,floor,heddle   also portkey, litellm, vllm-router, sglang-router
 *   --connections 1,16,64  --prompts 1,50 (KB)  --seconds 3  --warm 12
 *
 * Each gateway is loaded for `warm` seconds with all workloads in turn before anything is measured:
 * what compiles while it runs is judged by what an operator sees of it, not by its first seconds.
 *
 * What is on no machine is left out, and said. Beside it: leak.ts and streams.ts.
 */
import { parseArgs } from "node:util";
import { say } from "../../../tools/say.ts";
import { GATEWAYS } from "./gateways.ts";
import { load, measure, type Measured, type Workload } from "./measure.ts";
import { freePort } from "./process.ts";
import { startEngine } from "./stage.ts";

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      gateways: { type: "string", default: "direct,nginx,floor,heddle" },
      connections: { type: "string", default: "1,16,64" },
      prompts: { type: "string", default: "1,50" },
      seconds: { type: "string", default: "3" },
      warm: { type: "string", default: "12" },
    },
  });
  const workloads = workloadsOf(values);
  const results = new Map<string, ReadonlyMap<Workload, Measured>>();
  for (const name of values.gateways.split(",")) {
    const found = await measureAll(name, workloads, Number(values.warm));
    if (found !== undefined) results.set(name, found);
  }
  for (const workload of workloads) print(workload, results);
}

function workloadsOf(
  values: { readonly connections: string; readonly prompts: string; readonly seconds: string },
): readonly Workload[] {
  const numbers = (text: string) => text.split(",").map(Number);
  return [false, true].flatMap((stream) =>
    numbers(values.prompts).flatMap((promptKb) =>
      numbers(values.connections).map((connections) => ({
        stream,
        promptKb,
        connections,
        seconds: Number(values.seconds),
      }))
    )
  );
}

/** Undefined where the gateway is not there. Each has an engine of its own, alike for all. */
async function measureAll(
  name: string,
  workloads: readonly Workload[],
  warmSeconds: number,
): Promise<ReadonlyMap<Workload, Measured> | undefined> {
  const start = GATEWAYS[name];
  if (start === undefined) throw new Error(`There is no gateway ${name}`);
  const folder = await Deno.makeTempDir();
  try {
    const enginePort = freePort();
    await using _engine = await startEngine(enginePort);
    await using gateway = await start(enginePort, folder);
    const seconds = warmSeconds / workloads.length;
    for (const workload of workloads) await load(gateway, { ...workload, seconds });
    const found = new Map<Workload, Measured>();
    for (const workload of workloads) {
      found.set(workload, await measure(gateway, workload));
      say(`${name}: ${titleOf(workload)} measured`);
    }
    return found;
  } catch (error) {
    say(`${name} is left out: ${error instanceof Error ? error.message : error}`);
    return undefined;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function titleOf({ connections, promptKb, stream }: Workload): string {
  return `${
    stream ? "streams" : "whole answers"
  }, ${promptKb} KB prompts, ${connections} at a time`;
}

const COLUMNS = [
  ["", 14],
  ["req/s", 8],
  ["p50 ms", 9],
  ["p99 ms", 9],
  ["+p50", 8],
  ["+p99", 8],
  ["×p50", 7],
  ["+first p50", 12],
  ["p99", 8],
  ["+event p50", 12],
  ["p99", 8],
  ["CPU ms/req", 12],
  ["MiB", 6],
  ["failed", 8],
] as const;

function print(
  workload: Workload,
  results: ReadonlyMap<string, ReadonlyMap<Workload, Measured>>,
): void {
  say(`\n${titleOf(workload)}`);
  say(row(COLUMNS.map(([title]) => title)));
  const direct = results.get("direct")?.get(workload);
  for (const [name, found] of results) {
    const got = found.get(workload);
    if (got !== undefined) say(row(cells(name, got, direct)));
  }
}

/** What was added is told against no gateway in the same run. */
function cells(name: string, got: Measured, direct: Measured | undefined): readonly string[] {
  const added = (value: number | undefined, base: number | undefined): string =>
    value === undefined || base === undefined || got === direct ? "" : (value - base).toFixed(2);
  return [
    name,
    got.perSecond.toFixed(0),
    got.p50.toFixed(2),
    got.p99.toFixed(2),
    added(got.p50, direct?.p50),
    added(got.p99, direct?.p99),
    direct === undefined ? "" : (got.p50 / direct.p50).toFixed(2),
    added(got.firstP50, direct?.firstP50),
    added(got.firstP99, direct?.firstP99),
    added(got.chunkP50, direct?.chunkP50),
    added(got.chunkP99, direct?.chunkP99),
    got.cpuPerRequest?.toFixed(2) ?? "",
    got.memoryMib?.toFixed(0) ?? "",
    got.failures === 0 ? "" : String(got.failures),
  ];
}

function row(texts: readonly string[]): string {
  return texts.map((text, index) =>
    index === 0 ? text.padEnd(COLUMNS[0][1]) : text.padStart(COLUMNS[index]?.[1] ?? 0)
  ).join("").trimEnd();
}

if (import.meta.main) await main();
