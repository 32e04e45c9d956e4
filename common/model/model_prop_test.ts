import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { misfit } from "./fits.ts";
import { readGguf } from "./gguf.ts";
import { ggufBytes, LLAMA_8B } from "./gguf_fake.ts";
import { readHfConfig, readSafetensorsIndex } from "./hf_config.ts";
import { readLaunchArgs } from "./launch_args.ts";
import { gpuNeedMib, headsProblem } from "./memory.ts";
import { known, type ModelFacts } from "./model_facts.ts";
import { decodeModelFacts, encodeModelFacts } from "./model_wire.ts";

function sane(facts: ModelFacts): void {
  for (const value of Object.values(facts)) {
    ok(typeof value !== "number" || (Number.isFinite(value) && value >= 0), String(value));
  }
}

Deno.test("readGguf() survives 10,000 spoilt headers", () => {
  const whole = ggufBytes(LLAMA_8B);
  const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 6 }), fc.nat(whole.length), (changes, length) => {
      const bytes = whole.slice();
      for (const [at, value] of changes) bytes[at] = value;
      const read = readGguf(bytes.subarray(0, length));
      if (read.kind === "model") sane(read.facts);
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("readers of a model's JSON survive 10,000 documents of any kind", () => {
  const keys = [
    "num_attention_heads",
    "hidden_size",
    "text_config",
    "quantization_config",
    "weight_map",
  ];
  const value = fc.oneof(
    fc.jsonValue(),
    fc.integer(),
    fc.double(),
    fc.dictionary(fc.constantFrom("quant_method", "format", ...keys), fc.jsonValue()),
  );
  const document = fc.oneof(
    fc.string(),
    fc.dictionary(fc.constantFrom(...keys), value).map((json) => JSON.stringify(json)),
    fc.jsonValue().map((json) => JSON.stringify(json)),
  );
  fc.assert(
    fc.property(document, (text) => {
      sane(readHfConfig(text) ?? {});
      for (const file of readSafetensorsIndex(text)?.files ?? []) ok(!file.includes("/"));
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("misfit() says something of any numbers, and with more memory never refuses more", () => {
  const count = fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined });
  const facts = fc.record({
    heads: count,
    kvHeads: count,
    kvBytesPerToken: count,
    kvWindow: count,
    kvWindowBytesPerToken: count,
    contextMax: count,
  });
  const shape = fc.record({
    engine: fc.constantFrom("vllm", "sglang", "llamacpp", "sim"),
    tp: fc.integer({ min: 1, max: 16 }),
    pp: fc.integer({ min: 1, max: 4 }),
    weightBytes: fc.integer({ min: 1, max: 2 ** 45 }),
    totalMib: fc.integer({ min: 1, max: 300_000 }),
    facts,
  });
  fc.assert(
    fc.property(shape, ({ engine, tp, pp, weightBytes, totalMib, facts }) => {
      const model = JSON.parse(JSON.stringify(facts));
      const of = (mib: number) => ({
        engine,
        tp,
        pp,
        weightBytes,
        model,
        args: readLaunchArgs([]),
        gpus: Array.from({ length: tp }, (_, index) => ({ index, gpuClass: "x", totalMib: mib })),
      });
      const small = misfit(of(totalMib));
      const large = misfit(of(totalMib * 2));
      ok(small === undefined || small.message.length > 20);
      ok(large === undefined || small !== undefined, "it fitted the smaller card");
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("gpuNeedMib() is what the smallest GPU must have that misfit() passes", () => {
  const shape = fc.record({
    engine: fc.constantFrom("vllm", "sglang", "llamacpp"),
    tp: fc.integer({ min: 1, max: 16 }),
    pp: fc.integer({ min: 1, max: 4 }),
    weightBytes: fc.integer({ min: 1, max: 2 ** 42 }),
    args: fc.constantFrom(
      [],
      ["--max-model-len", "8192"],
      ["-c", "32768", "--kv-cache-dtype", "fp8"],
      ["--gpu-memory-utilization", "0.5"],
      ["--mem-fraction-static=0.7", "--context-length", "4096"],
    ),
    model: fc.constantFrom(
      {},
      { kvBytesPerToken: 327_680, kvHeads: 8, contextMax: 131_072 },
      { kvBytesPerToken: 70_272, kvReplicated: true, contextMax: 163_840 },
      {
        kvBytesPerToken: 36_864,
        kvHeads: 8,
        contextMax: 131_072,
        kvWindow: 6_000,
        kvWindowBytesPerToken: 200_000,
      },
    ),
  });
  fc.assert(
    fc.property(shape, ({ args, ...rest }) => {
      const request = { ...rest, args: readLaunchArgs(args) };
      const count = request.engine === "llamacpp" ? request.tp : request.tp * request.pp;
      const passes = (totalMib: number) =>
        misfit({
          ...request,
          gpus: Array.from({ length: count }, (_, index) => ({ index, gpuClass: "x", totalMib })),
        }) === undefined;
      // Heads are another matter than memory.
      if (headsProblem(request.engine, request.tp, request.model) !== undefined) return;
      const need = gpuNeedMib(request, count);
      ok(need !== undefined);
      equal(passes(need + 1), true, `${need} MiB and one`);
      equal(passes(need - 2), false, `${need} MiB less two`);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("decodeModelFacts() gives back what encodeModelFacts() was given", () => {
  const count = fc.option(fc.integer({ min: 1, max: 1e6 }), { nil: undefined });
  const word = fc.option(fc.string({ minLength: 1 }), { nil: undefined });
  const facts = fc.record({
    architecture: word,
    layers: count,
    heads: count,
    kvHeads: count,
    headDim: count,
    contextMax: count,
    dtype: word,
    quantization: word,
    kvBytesPerToken: count,
    kvWindow: count,
    kvWindowBytesPerToken: count,
    kvReplicated: fc.constantFrom(true, undefined),
  });
  fc.assert(
    fc.property(facts, (given) => {
      const model = known(given);
      deepEqual(decodeModelFacts(encodeModelFacts(model)), model);
    }),
    { numRuns: 1_000 },
  );
});
