/**
 * Our command lines before the engines' own argument parsers, where they are installed:
 * HEDDLE_TEST_VLLM_PYTHON and HEDDLE_TEST_SGLANG_PYTHON name a Python that has the package (a plain
 * `pip install`; no GPU and no driver is needed). Elsewhere this is reported as skipped.
 */
import { equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { buildFor, LAYOUTS } from "./layouts_fake.ts";

const PARSE = fileURLToPath(new URL("../../tools/engine_flags/parse.py", import.meta.url));

/** Newer than any: everything that an adapter can say is said. */
const VERSION = "999.0.0";

const Answer = z.union([
  z.object({ accepted: z.record(z.string(), z.unknown()) }),
  z.object({ refused: z.array(z.string()) }),
]);

for (const engine of ["vllm", "sglang"]) {
  const python = Deno.env.get(`HEDDLE_TEST_${engine.toUpperCase()}_PYTHON`);

  Deno.test({
    name: `${engine}'s own parser takes what it is given, and makes of it what was asked for`,
    ignore: python === undefined,
    fn: async () => {
      const lines = LAYOUTS.map(({ shardCount = 1, dp = 1, pp = 1, ...layout }) => ({
        asked: { shardCount, dp, pp, rank: layout.rank ?? 0 },
        argv: argvOf(engine, { shardCount, dp, pp, ...layout }),
      })).filter(({ argv }) => argv.length > 0);
      ok(lines.length >= 5, "most layouts are this engine's own");
      const misspelt = (lines[0]?.argv ?? []).map((word) => word.replace("--host", "--hots"));
      const answers = await parse(python ?? "", engine, [
        ...lines.map(({ argv }) => argv),
        misspelt,
      ]);
      equal(answers.length, lines.length + 1);

      const last = answers.pop();
      ok(last !== undefined && "refused" in last, "the parser refuses what it does not know");
      match(last.refused.join(), /--hots/);

      for (const [index, answer] of answers.entries()) {
        const { argv, asked } = lines[index] ?? { argv: [], asked: undefined };
        ok("accepted" in answer, `${argv.join(" ")}: ${JSON.stringify(answer)}`);
        const { accepted } = answer;
        const of = (...names: string[]) =>
          names.map((name) => accepted[name]).find((x) => x ?? false);
        equal(of("port"), 20_000);
        equal(of("host"), "10.0.0.1");
        equal(String(of("served_model_name")), "demo");
        equal(of("pipeline_parallel_size", "pp_size"), asked?.pp);
        equal(of("data_parallel_size", "dp_size") ?? 1, asked?.dp);
        const nodes = of("nnodes");
        // vLLM's copies on several nodes, and Ray, have other words for it.
        if (nodes !== 1) {
          equal(nodes, asked?.shardCount);
          equal(of("node_rank") ?? 0, asked?.rank);
        }
      }
    },
  });
}

// Ray's own commands are Ray's to understand, and what stands before the flags is Python's.
function argvOf(engine: string, layout: Parameters<typeof buildFor>[1]): readonly string[] {
  const built = buildFor({ engine, version: VERSION }, layout);
  if (built?.kind !== "processes") return [];
  const argv = built.processes.find(({ name }) => name === "server")?.argv ?? [];
  const start = argv.findIndex((word) => word === "serve" || word === "sglang.launch_server");
  return engine === "vllm" ? argv.slice(start) : argv.slice(start + 1);
}

async function parse(python: string, engine: string, lists: readonly (readonly string[])[]) {
  const child = new Deno.Command(python, {
    args: [PARSE, engine],
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(
    new TextEncoder().encode(lists.map((each) => JSON.stringify(each)).join("\n")),
  );
  await writer.close();
  const { stdout } = await child.output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  return lines.map((line) => Answer.parse(JSON.parse(line)));
}
