import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { Plain } from "@heddle/proto/plain";
import type { SourceFacts } from "@heddle/proto/gen/weights";
import { parseConfig } from "@heddle/common/config_file";
import { catalogSchema } from "../catalog.ts";
import { inventory } from "../testing/builders.ts";
import { catalogEntry } from "./catalog_entry.ts";
import { fitOnClasses, fleetClasses } from "./classes.ts";
import { contextOn, gpuNeeds } from "./memory.ts";

const GIB = 2 ** 30;
/** Llama 3.3 70B in 16 bits. */
const LLAMA: Plain<SourceFacts> = {
  want: { source: "hf://meta-llama/Llama-3.3-70B-Instruct", include: [], exclude: [], version: "" },
  totalBytes: BigInt(131 * GIB),
  weightBytes: BigInt(131 * GIB),
  files: 40,
  entry: "",
  note: "",
  model: {
    architecture: "LlamaForCausalLM",
    layers: 80,
    heads: 64,
    kvHeads: 8,
    headDim: 128,
    contextMax: 131_072n,
    dtype: "bfloat16",
    quantization: "",
    kvBytesPerToken: BigInt(2 * 80 * 8 * 128 * 2),
    kvReplicated: false,
  },
};

Deno.test("gpuNeeds() shares weights and cache out over a group", () => {
  const [one, , four, eight] = gpuNeeds(LLAMA);
  ok(one !== undefined && four !== undefined && eight !== undefined);
  equal(one.memoryBytes, 132 * GIB);
  equal(four.memoryBytes, 131 * GIB / 4 + GIB);
  equal(one.kvBytesPerToken, 327_680);
  equal(eight.kvBytesPerToken, 40_960);
  equal(contextOn(LLAMA, one.tp, 81_559), 0, "140 GB on one card of 80");
  equal(contextOn(LLAMA, eight.tp, 81_559), 131_072, "no longer than the model's own");
});

Deno.test("gpuNeeds() says why a model cannot be divided", () => {
  const odd = { ...LLAMA, model: LLAMA.model && { ...LLAMA.model, heads: 28, kvHeads: 4 } };
  deepEqual(gpuNeeds(odd).map(({ problem }) => problem), [
    "",
    "",
    "",
    "the model's 28 attention heads cannot be divided by tp 8; tp can be 1, 2, 4, 7, 14, 28",
  ]);
});

Deno.test("gpuNeeds() shares a GGUF model's layers out, whatever its heads", () => {
  const model = LLAMA.model && { ...LLAMA.model, heads: 28, kvHeads: 4 };
  const gguf = { ...LLAMA, entry: "m.gguf", weightBytes: BigInt(41 * GIB), model };
  const [one, two, , eight] = gpuNeeds(gguf);
  deepEqual([one?.problem, eight?.problem], ["", ""]);
  equal(one?.memoryBytes, 42 * GIB);
  equal(two?.memoryBytes, 21 * GIB);
  equal(eight?.kvBytesPerToken, 40_960);
  equal(contextOn(gguf, 1, 24_564), 0);
  equal(contextOn(gguf, 2, 24_564), Math.floor((2 * 24_564 - 42 * 1_024) * 2 ** 20 / 327_680));
});

Deno.test("catalogEntry() is an entry that a catalog takes, with the smallest group that will do", () => {
  const classes = fitOnClasses(LLAMA, gpuNeeds(LLAMA), fleetClasses([inventory("n1")]));
  const text = catalogEntry(LLAMA, classes);
  match(text, /name: llama-3\.3-70b-instruct\n/);
  const parsed = parseConfig(catalogSchema, `models:\n${text.replace(/^/gm, "  ")}`, "entry");
  ok(parsed.kind === "ok", JSON.stringify(parsed));
  const [profile] = parsed.value.models[0]?.profiles ?? [];
  equal(profile?.gpu_class, "h100-80g");
  equal(profile?.tp, 2);
});
