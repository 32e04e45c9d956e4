/** The simulated engine as OpenAI's own client sees it. */
import assert from "node:assert/strict";
import OpenAI from "openai";
import { startSimulation } from "./simulation_case.ts";

function clientOf(url: string, apiKey = "none"): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

const MESSAGES = [{ role: "user" as const, content: "What is a heddle?" }];
const WEATHER = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "Weather at a place",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string" },
        unit: { type: "string", enum: ["celsius", "fahrenheit"] },
      },
      required: ["city"],
    },
  },
};

Deno.test("openai lists the models", async () => {
  await using engine = await startSimulation();
  const models = await clientOf(engine.url).models.list();
  assert.deepEqual(models.data.map(({ id }) => id), ["tiny", "alias"]);
  assert.equal((await clientOf(engine.url).models.retrieve("alias")).id, "alias");
});

Deno.test("openai chats: an answer that says what it is, and usage that adds up", async () => {
  await using engine = await startSimulation();
  const answer = await clientOf(engine.url).chat.completions.create({
    model: "alias",
    messages: MESSAGES,
  });
  assert.equal(answer.model, "alias");
  const [choice] = answer.choices;
  assert.match(choice?.message.content ?? "", /^This is a simulated engine/);
  assert.equal(choice?.finish_reason, "stop");
  const usage = answer.usage;
  assert.ok(usage !== undefined && usage.completion_tokens >= 64);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
});

Deno.test("openai streams the same answer as it gets whole", async () => {
  await using engine = await startSimulation();
  const client = clientOf(engine.url);
  const request = { model: "tiny", messages: MESSAGES, max_tokens: 40, n: 2 };
  const whole = await client.chat.completions.create(request);
  const texts = ["", ""];
  const finishes: string[] = [];
  let tokens = 0;
  const stream = await client.chat.completions.create({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    for (const { index, delta, finish_reason: finish } of chunk.choices) {
      texts[index] += delta.content ?? "";
      if (finish !== null) finishes.push(finish);
    }
    tokens = chunk.usage?.completion_tokens ?? tokens;
  }
  assert.deepEqual(texts, whole.choices.map(({ message }) => message.content));
  assert.notEqual(texts[0], texts[1], "two choices are two answers");
  assert.deepEqual(finishes, ["length", "length"]);
  assert.equal(tokens, 80);
});

Deno.test("openai calls the tool that it must, whole and streamed", async () => {
  await using engine = await startSimulation();
  const client = clientOf(engine.url);
  for (
    const tool_choice of [
      "required",
      { type: "function", function: { name: "get_weather" } },
    ] as const
  ) {
    const request = { model: "tiny", messages: MESSAGES, tools: [WEATHER], tool_choice };
    const whole = await client.chat.completions.create(request);
    assert.equal(whole.choices[0]?.finish_reason, "tool_calls");
    const [call] = whole.choices[0]?.message.tool_calls ?? [];
    assert.ok(call?.type === "function" && call.function.name === "get_weather");
    assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ["city", "unit"]);

    const final = await client.chat.completions.stream(request).finalChatCompletion();
    const [streamed] = final.choices[0]?.message.tool_calls ?? [];
    assert.ok(streamed?.type === "function");
    assert.equal(streamed.id, call.id);
    assert.equal(streamed.function.arguments, call.function.arguments);
  }
});

Deno.test("openai's tools come through: an automatic choice calls the one that is named", async () => {
  await using engine = await startSimulation();
  const client = clientOf(engine.url);
  const other = { type: "function" as const, function: { name: "lookup" } };
  const ask = (content: string) =>
    client.chat.completions.create({
      model: "tiny",
      messages: [{ role: "user", content }],
      tools: [other, WEATHER],
    });
  const called = (await ask("Please get_weather in Oslo.")).choices[0]?.message;
  assert.ok(called?.tool_calls?.[0]?.type === "function");
  assert.equal(called.tool_calls[0].function.name, "get_weather");
  const told = (await ask("Hello.")).choices[0]?.message;
  assert.match(told?.content ?? "", /It was offered the tools: lookup, get_weather\./);
});

Deno.test("openai completes a text, with OpenAI's default of 16 tokens", async () => {
  await using engine = await startSimulation();
  const client = clientOf(engine.url);
  const answer = await client.completions.create({
    model: "tiny",
    prompt: ["Once", "Twice"],
    echo: true,
  });
  assert.equal(answer.choices.length, 2);
  assert.ok(answer.choices[1]?.text.startsWith("Twice This is a simulated engine"));
  assert.equal(answer.usage?.completion_tokens, 32);
  let text = "";
  const stream = await client.completions.create({ model: "tiny", prompt: "Once", stream: true });
  for await (const event of stream) text += event.choices[0]?.text ?? "";
  assert.equal(`Once${text}`, answer.choices[0]?.text);
});

Deno.test("openai embeds: the client's base64 and plain floats are the same vector", async () => {
  await using engine = await startSimulation();
  const client = clientOf(engine.url);
  const input = ["warp and weft", "warp and woof", "zymurgy"];
  // The client asks for base64 unless it is told otherwise.
  const vectors = (await client.embeddings.create({ model: "tiny", input })).data
    .map(({ embedding }) => embedding);
  const floats = (await client.embeddings.create({
    model: "tiny",
    input,
    encoding_format: "float",
  })).data.map(({ embedding }) => embedding);
  assert.deepEqual(vectors.map((vector) => vector.length), [384, 384, 384]);
  assert.deepEqual(vectors, floats);
  const dot = (a: readonly number[] = [], b: readonly number[] = []) =>
    a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  assert.ok(Math.abs(dot(vectors[0], vectors[0]) - 1) < 1e-5, "vectors have length 1");
  assert.ok(dot(vectors[0], vectors[1]) > dot(vectors[0], vectors[2]), "like texts are near");
});

Deno.test("openai sees vLLM's errors as what they are", async () => {
  await using engine = await startSimulation("--api-key", "right", "--max-model-len", "100");
  const refused = async (act: (client: OpenAI) => Promise<unknown>, key = "right") => {
    try {
      await act(clientOf(engine.url, key));
    } catch (error) {
      assert.ok(error instanceof OpenAI.APIError, String(error));
      return { status: error.status, type: error.type, param: error.param };
    }
    return assert.fail("it was accepted");
  };
  const chat = (options: { model?: string; content?: string; max_tokens?: number }) =>
  (
    client: OpenAI,
  ) =>
    client.chat.completions.create({
      model: options.model ?? "tiny",
      messages: [{ role: "user", content: options.content ?? "hi" }],
      max_tokens: options.max_tokens ?? null,
    });
  assert.deepEqual((await refused(chat({}), "wrong")).status, 401);
  assert.deepEqual(
    await refused(chat({ model: "huge" })),
    { status: 404, type: "NotFoundError", param: "model" },
  );
  assert.deepEqual(
    await refused(chat({ content: "long ".repeat(200) })),
    { status: 400, type: "BadRequestError", param: "input_tokens" },
  );
  assert.deepEqual(
    await refused(chat({ max_tokens: 99 })),
    { status: 400, type: "BadRequestError", param: "max_tokens" },
  );
});
