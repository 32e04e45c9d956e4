import assert from "node:assert/strict";
import { createSseFramer } from "./sse.ts";
import { judgeAnswer } from "./usage_answer.ts";
import { createStreamMeter, type StreamDialect } from "./usage_stream.ts";
import { readUsage } from "./usage.ts";

const FIXTURES = new URL("../../tests/fixtures/openai/", import.meta.url);

function judged(dialect: StreamDialect, stream: string) {
  const framer = createSseFramer();
  const meter = createStreamMeter(dialect);
  const events = framer.push(new TextEncoder().encode(stream));
  return { verdicts: events.map((event) => meter.observe(event).kind), meter };
}

const data = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`;
const chunk = (delta: unknown, more: Record<string, unknown> = {}) =>
  data({ choices: [{ index: 0, delta, finish_reason: null, ...more }] });

const USAGES: readonly [what: string, json: unknown, want: unknown][] = [
  ["chat", { usage: { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 } }, {
    promptTokens: 11,
    completionTokens: 4,
  }],
  ["an explicit zero", { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }, {
    promptTokens: 0,
    completionTokens: 0,
  }],
  ["details", {
    usage: {
      prompt_tokens: 11,
      completion_tokens: 4,
      prompt_tokens_details: { cached_tokens: 8 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
  }, { promptTokens: 11, completionTokens: 4, cachedTokens: 8, reasoningTokens: 2 }],
  ["details that are null", {
    usage: { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: null },
  }, { promptTokens: 1, completionTokens: 1 }],
  ["embeddings", { usage: { prompt_tokens: 6, total_tokens: 6 } }, {
    promptTokens: 6,
    completionTokens: 0,
  }],
  ["a total only", { usage: { total_tokens: 6 } }, { promptTokens: 6, completionTokens: 0 }],
  ["Responses", {
    type: "response.completed",
    response: {
      usage: {
        input_tokens: 11,
        output_tokens: 4,
        input_tokens_details: { cached_tokens: 3 },
        output_tokens_details: { reasoning_tokens: 1 },
      },
    },
  }, { promptTokens: 11, completionTokens: 4, cachedTokens: 3, reasoningTokens: 1 }],
  ["Messages, where cached tokens stand beside the input", {
    usage: { input_tokens: 3, cache_read_input_tokens: 8, output_tokens: 4 },
  }, { promptTokens: 11, completionTokens: 4, cachedTokens: 8 }],
  ["output only", { usage: { output_tokens: 4 } }, { promptTokens: 0, completionTokens: 4 }],
  ["none", { choices: [] }, undefined],
  ["null", { usage: null }, undefined],
  ["nonsense", { usage: { prompt_tokens: -1, completion_tokens: "4" } }, undefined],
  ["no object", [1], undefined],
];

for (const [what, json, want] of USAGES) {
  Deno.test(`readUsage() reads ${what}`, () => assert.deepEqual(readUsage(json), want));
}

const STREAMS: readonly [
  what: string,
  dialect: StreamDialect,
  stream: string,
  verdicts: string,
  finished: boolean,
][] = [
  [
    "a whole chat",
    "chat",
    chunk({ role: "assistant", content: "" }) + chunk({ content: "a" }) +
    chunk({}, { finish_reason: "stop" }) + data({ choices: [], usage: { prompt_tokens: 1 } }) +
    "data: [DONE]\n\n",
    "prelude content finish usage done",
    true,
  ],
  [
    "content and finish at once",
    "chat",
    chunk({ content: "a" }, { finish_reason: "length" }),
    "finish",
    true,
  ],
  [
    "reasoning",
    "chat",
    chunk({ reasoning: "a" }) + chunk({ reasoning_content: "a" }),
    "content content",
    false,
  ],
  [
    "tool calls",
    "chat",
    chunk({ tool_calls: [{ index: 0 }] }) + chunk({ tool_calls: [] }),
    "content prelude",
    false,
  ],
  [
    "two choices of which one finishes",
    "chat",
    data({ choices: [{ index: 0, delta: { content: "a" } }] }) +
    data({ choices: [{ index: 1, delta: { content: "b" } }] }) +
    data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    "content content finish",
    false,
  ],
  [
    "both choices finish",
    "chat",
    data({ choices: [{ index: 0, delta: { content: "a" } }, { index: 1, delta: {} }] }) +
    data({ choices: [{ index: 1, delta: {}, finish_reason: "stop" }] }) +
    data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    "content finish finish",
    true,
  ],
  ["only [DONE]", "chat", "data: [DONE]\n\n", "done", false],
  [
    "comments, empty data and pings in JSON",
    "chat",
    ': x\n\ndata:\n\ndata: {"type":"ping"}\n\n',
    "silent silent silent",
    false,
  ],
  [
    "usage with choices that are null",
    "chat",
    data({ choices: null, usage: { prompt_tokens: 1 } }),
    "usage",
    false,
  ],
  [
    "an empty list of choices",
    "chat",
    data({ choices: [], prompt_filter_results: [] }),
    "prelude",
    false,
  ],
  ["an error", "chat", data({ error: { message: "x" } }), "error", false],
  [
    "an error by name",
    "chat",
    'event: error\ndata: {"message":"x"}\n\nevent: error\ndata: x\n\n',
    "error error",
    false,
  ],
  [
    "a finish reason that says error",
    "chat",
    chunk({}, { finish_reason: "error" }),
    "error",
    false,
  ],
  ["an abort", "chat", chunk({ content: "a" }, { finish_reason: "abort" }), "error", false],
  [
    "what is not JSON",
    "chat",
    "data: {\n\ndata: 1\n\ndata: [1]\n\n",
    "malformed malformed malformed",
    false,
  ],
  [
    "completions",
    "completions",
    data({ choices: [{ index: 0, text: "" }] }) + data({ choices: [{ index: 0, text: "a" }] }) +
    data({ choices: [{ index: 0, text: "", finish_reason: "stop" }] }),
    "prelude content finish",
    true,
  ],
  [
    "a transcription in chunks",
    "events",
    data({ object: "transcription.chunk", choices: [{ delta: { content: "a" } }] }),
    "content",
    false,
  ],
  [
    "a transcription in typed events",
    "events",
    data({ type: "transcript.text.delta", delta: "a" }) +
    data({ type: "transcript.text.done", usage: { input_tokens: 2, output_tokens: 1 } }),
    "content finish",
    true,
  ],
];

for (const [what, dialect, stream, verdicts, finished] of STREAMS) {
  Deno.test(`StreamMeter judges ${what}`, () => {
    const { verdicts: got, meter } = judged(dialect, stream);
    assert.equal(got.join(" "), verdicts);
    assert.equal(meter.finished, finished);
  });
}

Deno.test("StreamMeter counts content, also when it finishes", () => {
  const { meter } = judged(
    "chat",
    chunk({ role: "assistant" }) + chunk({ content: "a" }) +
      chunk({ content: "b" }, { finish_reason: "stop" }),
  );
  assert.equal(meter.contentEvents, 2);
  assert.equal(meter.usage, undefined);
});

Deno.test("StreamMeter takes the last of cumulative usage, and keeps what only the first says", () => {
  const usage = (n: number) => ({ usage: { prompt_tokens: 11, completion_tokens: n } });
  const { meter } = judged(
    "chat",
    [1, 2, 4].map((n) => data({ choices: [{ index: 0, delta: { content: "a" } }], ...usage(n) }))
      .join("") +
      data({ choices: [{ index: 0, delta: {} }], usage: null }),
  );
  assert.deepEqual(meter.usage, { promptTokens: 11, completionTokens: 4 });
  const messages = judged(
    "messages",
    data({
      type: "message_start",
      message: { usage: { input_tokens: 11, output_tokens: 1 } },
    }) +
      data({
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: 4 },
      }),
  );
  assert.deepEqual(messages.meter.usage, { promptTokens: 11, completionTokens: 4 });
});

const FILES: readonly [
  file: string,
  dialect: StreamDialect,
  last: string,
  finished: boolean,
  usage: unknown,
][] = [
  ["ok", "chat", "done", true, undefined],
  ["ok-usage", "chat", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["crlf-usage", "chat", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["nospace-usage", "chat", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["multiline-data", "chat", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["continuous-usage", "chat", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["comments", "chat", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["cut-no-finish", "chat", "content", false, undefined],
  ["only-done", "chat", "done", false, undefined],
  ["messages-ok", "messages", "done", true, { promptTokens: 11, completionTokens: 4 }],
  ["messages-error", "messages", "error", false, { promptTokens: 11, completionTokens: 1 }],
  ["responses-completed-nodone", "responses", "finish", true, {
    promptTokens: 11,
    completionTokens: 4,
    cachedTokens: 0,
    reasoningTokens: 0,
  }],
  ["responses-cut", "responses", "content", false, undefined],
];

for (const [file, dialect, last, finished, usage] of FILES) {
  Deno.test(`StreamMeter reads ${file}.sse`, () => {
    const { verdicts, meter } = judged(
      dialect,
      new TextDecoder().decode(Deno.readFileSync(new URL(`sse/${file}.sse`, FIXTURES))),
    );
    assert.equal(verdicts.at(-1), last);
    assert.equal(meter.finished, finished);
    assert.deepEqual(meter.usage, usage);
  });
}

Deno.test("StreamMeter remembers of a Responses stream what its end must repeat", () => {
  const { meter } = judged(
    "responses",
    data({
      type: "response.created",
      sequence_number: 0,
      response: { id: "resp_1", model: "m", created_at: 5 },
    }) + data({ type: "response.output_text.delta", sequence_number: 6, delta: "a" }),
  );
  assert.deepEqual(meter.response, { id: "resp_1", model: "m", createdAt: 5, sequenceNumber: 7 });
});

Deno.test("judgeAnswer() knows whole answers, unfinished ones and errors under 200", () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2 };
  assert.deepEqual(
    judgeAnswer({ choices: [{ finish_reason: "stop" }], usage }, "chat"),
    { kind: "ok", usage: { promptTokens: 1, completionTokens: 2 }, finished: true },
  );
  for (
    const [json, dialect, finished] of [
      [{ choices: [{ finish_reason: null }] }, "chat", false],
      [{ choices: [] }, "completions", false],
      [[], "chat", false],
      [{ status: "completed" }, "responses", true],
      [{ status: "in_progress" }, "responses", false],
      [{ stop_reason: "end_turn" }, "messages", true],
      [{ data: [] }, "other", true],
    ] as const
  ) {
    const verdict = judgeAnswer(json, dialect);
    assert.equal(verdict.kind === "ok" && verdict.finished, finished);
  }
  assert.equal(judgeAnswer({ error: { message: "x" } }, "chat").kind, "error");
  assert.equal(judgeAnswer({ object: "error", message: "x" }, "other").kind, "error");
  const failed = { status: "failed", error: { code: "server_error", message: "x" } };
  assert.equal(judgeAnswer(failed, "responses").kind, "error");
});
