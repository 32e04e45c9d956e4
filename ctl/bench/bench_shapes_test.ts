import { deepEqual, equal, notDeepEqual, ok, throws } from "node:assert/strict";
import { levelOf, percentiles } from "./measured.ts";
import { namedShape, SHAPES } from "./shape.ts";
import { shapeOfLines } from "./shape_file.ts";

Deno.test("a shape gives the same requests for a seed, others for another, and shares beginnings", () => {
  for (const name of SHAPES) {
    const shape = namedShape(name);
    ok(shape);
    const requests = Array.from({ length: 40 }, (_, index) => shape.request(7, index));
    deepEqual(requests[3], shape.request(7, 3));
    notDeepEqual(requests[3], shape.request(8, 3));
    equal(new Set(requests.map((each) => each.messages.at(-1)?.content)).size, 40);
    const begins = new Set(
      requests.flatMap((each) => each.messages.length > 1 ? each.messages[0]?.content : []),
    );
    equal(begins.size, { chat: 4, rag: begins.size, batch: 0 }[name]);
    ok(name !== "rag" || (begins.size > 4 && begins.size <= 24));
  }
  equal(namedShape("no-such-shape"), undefined);
});

Deno.test("a file gives its own requests, or some of the lengths it says", () => {
  const shape = shapeOfLines(
    "t.jsonl",
    '{"messages":[{"role":"user","content":"hi"}],"max_tokens":5}\n\n' +
      '{"prompt_tokens":10,"output_tokens":3,"prefix":"a","prefix_tokens":4}\n',
  );
  deepEqual(shape.request(1, 2), { messages: [{ role: "user", content: "hi" }], maxTokens: 5 });
  const [prefix, question] = shape.request(1, 1).messages;
  deepEqual(
    [prefix?.content.split(" ").length, question?.content.split(" ").length],
    [4, 6],
  );
  equal(shape.request(1, 3).messages[0]?.content, prefix?.content, "the prefix is shared");
});

Deno.test("a file that is wrong is refused with the line", () => {
  throws(() => shapeOfLines("t.jsonl", "\n"), /t\.jsonl: there is no request in it/);
  throws(
    () => shapeOfLines("t.jsonl", '{"prompt_tokens":1}\nx\n'),
    /t\.jsonl:2: not a line of JSON/,
  );
  throws(
    () => shapeOfLines("t.jsonl", '{"prompt_tokens":0}\n'),
    /t\.jsonl:1: prompt_tokens: .*>=1/,
  );
  throws(() => shapeOfLines("t.jsonl", '{"messages":[]}\n'), /t\.jsonl:1: messages: /);
});

Deno.test("levelOf() counts as goodput only what kept the promise", () => {
  const answer = {
    ttftMs: 100,
    tpotMs: 10,
    durationMs: 500,
    completionTokens: 20,
    promptTokens: 10,
    cachedTokens: 5,
    error: undefined,
  };
  const level = levelOf(
    [
      answer,
      { ...answer, ttftMs: 900 },
      { ...answer, tpotMs: undefined, completionTokens: 1 },
      { ...answer, ttftMs: undefined, error: "503", cachedTokens: undefined },
    ],
    { concurrency: 2, seconds: 10 },
    { ttftMs: 200, tpotMs: 20 },
  );
  deepEqual(
    [level.answered, level.failed, level.within, level.goodput, level.error, level.cached],
    [3, 1, 0.5, 0.2, "503", 0.5],
  );
  equal(level.completionTokensPerS, 4.1);
  deepEqual(percentiles([3, 1, 2]), { p50: 2, p90: 3, p99: 3 });
  deepEqual(percentiles([]), { p50: undefined, p90: undefined, p99: undefined });
});
