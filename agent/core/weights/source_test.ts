import { deepEqual, equal } from "node:assert/strict";
import { isInside, parseSource } from "./source.ts";

Deno.test("parseSource() reads paths, hub names and addresses", () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ["/m/a", { kind: "path", path: "/m/a" }],
    ["hf://a/b", { kind: "hub", repo: "a/b", revision: "main" }],
    ["hf://a/b@v1.0", { kind: "hub", repo: "a/b", revision: "v1.0" }],
    ["hf://a/b@refs%2Fpr%2F3", { kind: "hub", repo: "a/b", revision: "refs/pr/3" }],
    ["hf://a/b/q4.gguf", { kind: "hub", repo: "a/b", revision: "main", file: "q4.gguf" }],
    ["hf://a/b@x/sub/", { kind: "hub", repo: "a/b", revision: "x", file: "sub" }],
    ["https://h.example/m.gguf", { kind: "web", url: "https://h.example/m.gguf" }],
    ["Qwen/Qwen3", { kind: "other" }],
  ];
  for (const [text, expected] of cases) deepEqual(parseSource(text), expected, text);
});

Deno.test("parseSource() refuses what would lead out, or into a log", () => {
  for (
    const text of [
      "hf://a",
      "hf://a/b@",
      "hf://a/b@%zz",
      "hf://a/b/../c",
      "hf://a/b@x/a//b",
      "https://u:p@h/m",
      "https://h/m#x",
    ]
  ) equal(parseSource(text).kind, "invalid", text);
});

Deno.test("isInside() knows paths that stay where they are", () => {
  for (const path of ["a", "a/b.gguf", "..a", "a..b/c"]) equal(isInside(path), true, path);
  for (const path of ["", "/a", "a/", "../a", "a/../b", "./a", "a\\b", "a\nb"]) {
    equal(isInside(path), false, path);
  }
});
