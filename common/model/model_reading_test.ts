import { deepEqual, equal, match } from "node:assert/strict";
import { ggufBytes, LLAMA_8B } from "./gguf_fake.ts";
import { ggufParts, readGgufModel, readModelFolder } from "./model_reading.ts";

function folder(sizes: Readonly<Record<string, number | undefined>>, index?: string) {
  return readModelFolder({ where: "/m", sizes: new Map(Object.entries(sizes)), index });
}

Deno.test("readModelFolder() counts the files that an engine takes, once", () => {
  equal(folder({ "model.safetensors": 600, "pytorch_model.bin": 900 }).weightBytes, 600);
  equal(folder({ "pytorch_model.bin": 900, "training_args.bin": 700 }).weightBytes, 900);
  equal(folder({ "consolidated.00.pth": 900 }).weightBytes, 900);
  equal(folder({ "model.safetensors": 600, "consolidated.safetensors": 600 }).weightBytes, 600);
  equal(folder({ "consolidated.safetensors": 600 }).weightBytes, 600);
});

Deno.test("readModelFolder() says nothing of a size that nobody told it", () => {
  deepEqual(folder({ "a.safetensors": 600, "b.safetensors": undefined }), { facts: {} });
  deepEqual(folder({}), { facts: {} });
});

Deno.test("readModelFolder() names what an index has and the folder lacks", () => {
  const index = JSON.stringify({ weight_map: { a: "a.safetensors", b: "b.safetensors" } });
  match(folder({ "a.safetensors": 600 }, index).problem ?? "", /1 of 2 files of \/m .* b\.safe/);
  match(
    folder({ "a.safetensors": 600, "b.safetensors": 130 }, index).problem ?? "",
    /\/m\/b\.safetensors has 130 bytes: it is cut short, or a Git LFS pointer/,
  );
});

Deno.test("readGgufModel() counts the parts of its model, and no other file", () => {
  const path = "q4/m-00001-of-00002.gguf";
  const second = "q4/m-00002-of-00002.gguf";
  deepEqual(ggufParts(path), [path, second]);
  deepEqual(ggufParts("M-00001-of-00002.GGUF")[1], "M-00002-of-00002.GGUF");
  const start = ggufBytes(LLAMA_8B);
  const sizes = new Map([[path, 10], [second, 20], ["mmproj.gguf", 400]]);
  const read = readGgufModel({ path, start, sizes });
  deepEqual([read.weightBytes, read.facts.layers], [30, 32]);
  sizes.delete(second);
  match(readGgufModel({ path, start, sizes }).problem ?? "", /m-00002-of-00002\.gguf, a part/);
});
