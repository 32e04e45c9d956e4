import { deepEqual, match, ok } from "node:assert/strict";
import { selectFiles } from "./select_files.ts";

const listed = (...paths: string[]) => paths.map((path) => ({ path, size: 1 }));
const ALL = { include: [], exclude: [] };

function chosen(paths: readonly string[], wanted: Partial<Parameters<typeof selectFiles>[1]> = {}) {
  const result = selectFiles(listed(...paths), { ...ALL, ...wanted });
  ok(result.kind === "selected", result.kind === "nothing" ? result.why : "");
  return { entry: result.selection.entry, paths: result.selection.files.map(({ path }) => path) };
}

function why(paths: readonly string[], wanted: Partial<Parameters<typeof selectFiles>[1]> = {}) {
  const result = selectFiles(listed(...paths), { ...ALL, ...wanted });
  ok(result.kind === "nothing");
  return result.why;
}

Deno.test("selectFiles() takes safetensors and leaves the same weights in other forms", () => {
  deepEqual(
    chosen([
      "config.json",
      "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors",
      "model.safetensors.index.json",
      "pytorch_model.bin",
      "original/consolidated.00.pth",
      "onnx/model.onnx",
      "tokenizer.json",
      "tokenizer.model",
      "chat_template.jinja",
      "logo.png",
    ]),
    {
      entry: "",
      paths: [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer.model",
        "chat_template.jinja",
      ],
    },
  );
  deepEqual(chosen(["config.json", "pytorch_model.bin"]).paths, [
    "config.json",
    "pytorch_model.bin",
  ]);
});

Deno.test("selectFiles() gives one GGUF model, with all its parts, and asks when there are more", () => {
  const parts = ["q8-00001-of-00002.gguf", "q8-00002-of-00002.gguf"];
  deepEqual(chosen(["README.md", "q4.gguf", ...parts], { file: "q4.gguf" }), {
    entry: "q4.gguf",
    paths: ["q4.gguf"],
  });
  deepEqual(chosen(["q4.gguf", ...parts], { file: "q8-00001-of-00002.gguf" }), {
    entry: "q8-00001-of-00002.gguf",
    paths: parts,
  });
  match(why(["q4.gguf", ...parts]), /2 GGUF models.*q4\.gguf, q8-00001-of-00002\.gguf/);
  match(why(["q8-00001-of-00002.gguf"], { file: "q8-00001-of-00002.gguf" }), /it has no q8/);
  deepEqual(chosen(["q4.gguf", ...parts], { include: ["q4*"] }).entry, "q4.gguf");
});

Deno.test("selectFiles() follows patterns to the letter, and says when they leave nothing", () => {
  const files = ["a/config.json", "a/model.safetensors", "b/model.safetensors"];
  deepEqual(chosen(files, { file: "a" }), {
    entry: "a",
    paths: ["a/config.json", "a/model.safetensors"],
  });
  deepEqual(chosen(files, { exclude: ["b/*"] }).paths, files.slice(0, 2));
  match(why(files, { include: ["*.gguf"] }), /leave nothing of its 3 files/);
  match(why(files, { file: "c" }), /it has no c; it has a\/config\.json/);
  match(why(["README.md"]), /none of its files are weights: README\.md/);
});

Deno.test("selectFiles() leaves what bears the names of Heddle's own files", () => {
  const own = [
    ".lock",
    ".lock/x",
    ".heddle-weights.json",
    ".heddle-weights.json/x",
    ".heddle-aside/x",
  ];
  const names = ["model.safetensors", ...own, "sub/.lock", ".locks", ".heddle"];
  deepEqual(chosen(names, { include: ["*"] }).paths, [
    "model.safetensors",
    "sub/.lock",
    ".locks",
    ".heddle",
  ]);
});
