import assert from "node:assert/strict";
import { blockCount, decodeTotal, readConfig, type SimConfig, stepTokensMax } from "./config.ts";
import { parseArguments, SIM_OPTIONS, UsageError, USED_OPTIONS } from "./core/options.ts";
import { helpText } from "./help.ts";

function read(args: string, env: Record<string, string> = {}): SimConfig {
  const parsed = parseArguments(args.split(" "));
  return readConfig(
    { ...parsed, positionals: parsed.positionals.slice(1) },
    (name) => env[name],
  );
}

Deno.test("readConfig() has vLLM's defaults", () => {
  const config = read("serve m");
  assert.equal(config.port, 8000);
  assert.equal(config["max-model-len"], 8192);
  assert.equal(stepTokensMax(config), 2048);
  assert.equal(blockCount(config), 8192);
  assert.equal(decodeTotal(config), 2000);
});

Deno.test("readConfig() takes a command line as it is written for vLLM", () => {
  const config = read(
    "serve org/m --served-model-name a b --max_model_len 16K --port=9 -tp 8 -q fp8 -ep " +
      "--trust-remote-code --gpu-memory-utilization 0.9 --kv-cache-dtype fp8 --no-enable-prefix-caching " +
      '--limit-mm-per-prompt {"image":3} --api-key k1 k2 --seed -4 -O3',
  );
  assert.deepEqual(config["served-model-name"], ["a", "b"]);
  assert.equal(config["max-model-len"], 16_384);
  assert.equal(config.port, 9);
  assert.equal(config["tensor-parallel-size"], 8);
  assert.equal(config["enable-prefix-caching"], false);
  assert.equal(config["limit-mm-per-prompt"], 3);
  assert.deepEqual(config["api-key"], ["k1", "k2"]);
  assert.equal(config.seed, -4);
});

Deno.test("readConfig() takes sim's options from the environment, and the command line first", () => {
  const env = {
    HEDDLE_SIM_DECODE_TOKENS_PER_S: "10",
    HEDDLE_SIM_LOAD_MS: "7",
    HEDDLE_SIM_FAULT: "hang:at_ms=5,for_ms=1;ignore_sigterm",
    HEDDLE_SIM_ALLOW_REQUEST_FAULTS: "true",
    HEDDLE_SIM_SEED: "3",
    VLLM_API_KEY: "secret",
  };
  const config = read("serve m --sim-load-ms 9", env);
  assert.equal(config["sim-decode-tokens-per-s"], 10);
  assert.equal(config["sim-load-ms"], 9);
  assert.deepEqual(config["sim-fault"].map(({ kind }) => kind), ["hang", "ignore_sigterm"]);
  assert.equal(config["sim-allow-request-faults"], true);
  assert.equal(config.seed, 0, "only --sim-* options come from the environment");
  assert.deepEqual(config["api-key"], ["secret"]);
});

const REFUSED: readonly (readonly [args: string, why: RegExp])[] = [
  ["serve", /no MODEL given/],
  ["serve m --prot 1", /unknown option --prot; did you mean --port\?/],
  ["serve m -x", /unknown option -x/],
  ["serve m --port", /--port needs a value/],
  ["serve m --port --headless", /--port needs a value/],
  ["serve m --port 99999", /--port: /],
  ["serve m --max-model-len many", /--max-model-len: must be a count/],
  ["serve m --sim-decode-tokens-per-s 0", /--sim-decode-tokens-per-s: /],
  ["serve m --sim-decode-tokens-per-s-total 1", /must not be below --sim-decode-tokens-per-s/],
  ["serve m --sim-fault hangs", /--sim-fault.*no kind "hangs"/],
  ["serve m --nnodes 2 --node-rank 2 --headless", /--node-rank: must be below --nnodes/],
  ["serve m --nnodes 2 --node-rank 1", /--headless: is needed on every rank above 0/],
  ["serve m -dp 4 -dpl 3", /--data-parallel-size-local: must divide/],
  ["serve m -dp 4 -dpl 2 -dpr 4 --headless", /--data-parallel-start-rank: must be below/],
  ["serve m -dp 4 -dpl 2 -dpr 2", /--headless: is needed on every rank above 0/],
  ["serve m --headless", /--headless: is for ranks above 0/],
  ["serve m --max-num-batched-tokens 8", /must not be below --max-num-seqs/],
  ["serve m --max-model-len 1k --num-gpu-blocks-override 2", /max seq len/],
  ["serve m --enforce-eager=maybe", /a flag is true or false/],
];
for (const [args, why] of REFUSED) {
  Deno.test(`readConfig() refuses "${args}"`, () => {
    assert.throws(() => read(args), (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, why);
      return true;
    });
  });
}

Deno.test("helpText() names every option that does something", () => {
  const text = helpText();
  for (const { name, help } of [...USED_OPTIONS, ...SIM_OPTIONS]) {
    assert.ok(help !== undefined && text.includes(`--${name}`), name);
  }
});
