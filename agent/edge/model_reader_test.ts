import { deepEqual, equal, match } from "node:assert/strict";
import { join } from "node:path";
import { ggufBytes, LLAMA_8B } from "@heddle/common/model/gguf_fake";
import { readModel } from "./model_reader.ts";

async function withFolder(
  files: Readonly<Record<string, string | Uint8Array>>,
  work: (root: string) => Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir();
  try {
    for (const [name, content] of Object.entries(files)) {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      await Deno.writeFile(join(root, name), bytes);
    }
    await work(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

const CONFIG = JSON.stringify({ num_attention_heads: 8 });
const INDEX = JSON.stringify({
  metadata: { total_size: 5_000 },
  weight_map: { a: "model-1.safetensors", b: "model-2.safetensors" },
});

Deno.test("readModel() reads a folder: its configuration, and its weights as the index counts them", async () => {
  await withFolder({
    "config.json": CONFIG,
    "model.safetensors.index.json": INDEX,
    "model-1.safetensors": "x".repeat(600),
    "model-2.safetensors": "x".repeat(600),
  }, async (root) => {
    deepEqual(await readModel(root), { facts: { heads: 8, kvHeads: 8 }, weightBytes: 5_000 });
  });
  await withFolder({ "model.safetensors": "x".repeat(600), "model.bin": "y" }, async (root) => {
    deepEqual(await readModel(root), { facts: {}, weightBytes: 600 });
  });
});

Deno.test("readModel() names a file that is missing, or is not what it seems", async () => {
  await withFolder({
    "model.safetensors.index.json": INDEX,
    "model-1.safetensors": "x".repeat(600),
  }, async (root) => {
    match((await readModel(root)).problem ?? "", /1 of 2 files of .* such as model-2\.safetensors/);
  });
  await withFolder({ "model.safetensors": "version https://git-lfs" }, async (root) => {
    match((await readModel(root)).problem ?? "", /has 23 bytes: it is cut short, or a Git LFS/);
  });
  await withFolder({ "m.gguf": "<html>" }, async (root) => {
    match((await readModel(join(root, "m.gguf"))).problem ?? "", /is no GGUF file/);
  });
});

Deno.test("readModel() adds up the parts of a GGUF model", async () => {
  const part = ggufBytes(LLAMA_8B);
  await withFolder({
    "m-00001-of-00002.gguf": part,
    "m-00002-of-00002.gguf": part,
  }, async (root) => {
    const first = join(root, "m-00001-of-00002.gguf");
    const read = await readModel(first);
    equal(read.weightBytes, 2 * part.length);
    equal(read.facts.heads, 32);
    await Deno.remove(join(root, "m-00002-of-00002.gguf"));
    match((await readModel(first)).problem ?? "", /m-00002-of-00002\.gguf, a part of the model/);
  });
});

Deno.test("readModel() knows nothing of what it cannot read", async () => {
  deepEqual(await readModel("/nowhere/at/all"), { facts: {} });
  await withFolder({ "model.weights": "x" }, async (root) => {
    deepEqual(await readModel(root), { facts: {} });
  });
});
