/** The words that may stand first on the agent's command line, run as an operator runs them. */
import { equal, match } from "node:assert/strict";
import { fileURLToPath } from "node:url";

const AGENT = fileURLToPath(new URL("../bin/heddle-agent", import.meta.url));

async function run(args: readonly string[], options: { state?: string; stdin?: string } = {}) {
  const child = new Deno.Command(AGENT, {
    args: [...args],
    env: {
      HEDDLE_DENO: Deno.execPath(),
      ...(options.state === undefined ? {} : { HEDDLE_STATE: options.state }),
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  if (options.stdin !== undefined) await writer.write(new TextEncoder().encode(options.stdin));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

Deno.test("heddle-agent inventory prints a table or JSON, makes a capture, and reads one", async () => {
  const state = await Deno.makeTempDir();
  try {
    const folder = `${state}/capture`;
    const table = await run(["inventory", "--no-gpu", "--capture", folder], { state });
    equal(table.code, 0, table.stderr);
    match(table.stdout, /^Node /);
    const json = await run(["inventory", "-o", "json", "--replay", folder], { state });
    equal(
      JSON.parse(json.stdout).os,
      (await Deno.readTextFile(`${folder}/host.json`))
        .match(/"os": "([^"]*)"/)?.[1],
    );
    // The older way to say it stays.
    match(
      (await run(["--inventory", "table", "--nvidia-smi", "none"], { state })).stdout,
      /^Node /,
    );
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});

Deno.test("heddle-agent diagnose reads a log from anywhere", async () => {
  const log = "ValueError: No available memory for the cache blocks\n";
  match((await run(["diagnose", "-"], { stdin: log })).stdout, /^Reason: +kv_cache_no_room$/m);
  match((await run(["--diagnose", "-"], { stdin: log })).stdout, /^Reason: +kv_cache_no_room$/m);
});

Deno.test("heddle-agent diagnose and inventory use the paths that they are given, wherever they lie", async () => {
  const [state, elsewhere] = [await Deno.makeTempDir(), await Deno.makeTempDir()];
  try {
    const log = `${elsewhere}/rank 0.log`;
    await Deno.writeTextFile(log, "ValueError: No available memory for the cache blocks\n");
    for (const args of [["diagnose", log], ["--diagnose", log], [`--diagnose=${log},${log}`]]) {
      for (const options of [{}, { state }]) {
        const said = await run(args, options);
        match(said.stdout, /^Reason: +kv_cache_no_room$/m, said.stderr);
      }
    }
    const smi = `${elsewhere}/nvidia-smi`;
    await Deno.writeTextFile(smi, `#!/bin/sh\n: >>${elsewhere}/ran\nexit 9\n`, { mode: 0o700 });
    const folder = `${elsewhere}/a/capture`;
    await Deno.mkdir(`${elsewhere}/a`);
    const made = await run(["inventory", "--nvidia-smi", smi, `--capture=${folder}`]);
    equal(made.code, 0, made.stderr);
    equal((await Deno.stat(`${elsewhere}/ran`)).isFile, true, "it ran that nvidia-smi");
    equal((await Deno.stat(`${folder}/host.json`)).isFile, true);
    const read = await run(["inventory", "--replay", folder], { state });
    equal(read.code, 0, read.stderr);
    match(read.stdout, /^Node /);
  } finally {
    await Deno.remove(state, { recursive: true });
    await Deno.remove(elsewhere, { recursive: true });
  }
});

Deno.test("heddle-agent says in one line what it was not asked rightly", async () => {
  for (
    const [args, words] of [
      [["diagnose"], /name the log/],
      [["inventory", "-o", "yaml"], /want json or table/],
      [["inventory", "--no-such"], /Unknown option '--no-such'/],
      [["invent"], /Unexpected argument 'invent'/],
    ] as const
  ) {
    const { code, stderr } = await run(args);
    equal(code, 2);
    match(stderr, words);
    equal(stderr.trimEnd().split("\n").length, 1);
  }
});
