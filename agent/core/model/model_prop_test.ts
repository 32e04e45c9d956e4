import { ok } from "node:assert/strict";
import fc from "fast-check";
import { misfit } from "./fits.ts";
import { readGguf } from "./gguf.ts";
import { ggufBytes, LLAMA_8B } from "./gguf_fake.ts";
import { readHfConfig, readSafetensorsIndex } from "./hf_config.ts";
import { readLaunchArgs } from "./launch_args.ts";
import type { ModelFacts } from "./model_facts.ts";

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
