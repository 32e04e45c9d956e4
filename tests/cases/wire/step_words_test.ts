import assert from "node:assert/strict";
import { CaseFault } from "../expect/seen.ts";
import { stepOfWords } from "./step_words.ts";

Deno.test("stepOfWords() reads what steps say", () => {
  const cases: [words: string, request: Record<string, unknown>, expect: unknown][] = [
    ["A", { body_file: "req/chat.json" }, undefined],
    ["POST req/x.json", { body_file: "req/x.json" }, undefined],
    ["POST req/x.json -> engine 400", { body_file: "req/x.json" }, { status: 400 }],
    ["POST unknown model -> 404", { path: "/v1/chat/completions" }, { status: 404 }],
    ["engine hang -> 504", { body_file: "req/chat.json" }, { status: 504 }],
    ['POST own key with allowed_paths ["/*"]', {
      path: "/v1/keys",
      json: { allowed_paths: ["/*"] },
    }, undefined],
    ['PATCH self {"rpm":1e9}', { method: "PATCH", json: { rpm: 1e9 } }, undefined],
  ];
  for (const [words, request, expect] of cases) {
    const step = stepOfWords(words);
    assert.deepEqual(step.expect, expect, words);
    for (const [name, value] of Object.entries(request)) {
      assert.deepEqual(Reflect.get(step.request ?? {}, name), value, words);
    }
  }
});

Deno.test("stepOfWords() leaves to people what only people can do", () => {
  for (const words of ["unplug it", "", "POST", "AB"]) {
    assert.throws(() => stepOfWords(words), CaseFault);
  }
});
