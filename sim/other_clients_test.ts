/** The simulated engine behind the APIs beside chat: Responses, Messages, ranking, audio. */
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { dataOf, startSimulation } from "./simulation_case.ts";

const WEATHER = {
  name: "get_weather",
  description: "Weather at a place",
  schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] },
};
const USER = [{ role: "user" as const, content: "What is a heddle?" }];

function openai(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
}

function anthropic(url: string): Anthropic {
  return new Anthropic({ baseURL: url, apiKey: null, authToken: "none", maxRetries: 0 });
}

Deno.test("openai gets a response, whole and streamed alike, that ends as it should", async () => {
  await using engine = await startSimulation();
  const { responses } = openai(engine.url);
  const request = { model: "tiny", input: USER, instructions: "Be brief.", max_output_tokens: 20 };
  const whole = await responses.create(request);
  assert.match(whole.output_text, /^This is a simulated engine/);
  assert.equal(whole.status, "incomplete");
  assert.deepEqual(whole.incomplete_details, { reason: "max_output_tokens" });
  assert.equal(whole.usage?.output_tokens, 20);

  const stream = responses.stream(request);
  const types: string[] = [];
  const numbers: number[] = [];
  for await (const event of stream) {
    types.push(event.type);
    numbers.push(event.sequence_number);
  }
  assert.deepEqual(numbers, numbers.map((_, index) => index));
  assert.equal(types[0], "response.created");
  assert.equal(types.at(-1), "response.incomplete");
  assert.equal((await stream.finalResponse()).output_text, whole.output_text);
});

Deno.test("openai's responses call tools and refuse a state that is not there", async () => {
  await using engine = await startSimulation();
  const { responses } = openai(engine.url);
  const tools = [{
    type: "function" as const,
    name: WEATHER.name,
    parameters: WEATHER.schema,
    strict: false,
  }];
  const request = { model: "tiny", input: "Oslo?", tools, tool_choice: "required" as const };
  const [call] = (await responses.create(request)).output;
  assert.ok(call?.type === "function_call");
  assert.deepEqual(Object.keys(JSON.parse(call.arguments)), ["city"]);
  const [streamed] = (await responses.stream(request).finalResponse()).output;
  assert.ok(streamed?.type === "function_call");
  assert.equal(streamed.arguments, call.arguments);
  await assert.rejects(
    responses.create({ model: "tiny", input: "x", previous_response_id: "resp_1" }).then(() => {}),
    OpenAI.NotFoundError,
  );
});

Deno.test("anthropic gets a message, whole and streamed alike, and counts its tokens", async () => {
  await using engine = await startSimulation();
  const { messages } = anthropic(engine.url);
  const request = { model: "tiny", messages: USER, system: "Be brief.", max_tokens: 20 };
  const whole = await messages.create(request);
  const [block] = whole.content;
  assert.ok(block?.type === "text");
  assert.match(block.text, /^This is a simulated engine/);
  assert.equal(whole.stop_reason, "max_tokens");
  assert.equal(whole.usage.output_tokens, 20);
  const final = await messages.stream(request).finalMessage();
  assert.deepEqual(final.content.map((one) => one.type === "text" && one.text), [block.text]);
  assert.deepEqual(final.usage.output_tokens, 20);
  const { max_tokens: _, ...countable } = request;
  assert.deepEqual(await messages.countTokens(countable), {
    input_tokens: whole.usage.input_tokens,
  });
});

Deno.test("anthropic calls the tool that it must", async () => {
  await using engine = await startSimulation();
  const { messages } = anthropic(engine.url);
  const request = {
    model: "tiny",
    messages: USER,
    max_tokens: 200,
    tools: [{ name: WEATHER.name, input_schema: WEATHER.schema }],
    tool_choice: { type: "any" as const },
  };
  const whole = await messages.create(request);
  assert.equal(whole.stop_reason, "tool_use");
  const [block] = whole.content;
  assert.ok(block?.type === "tool_use");
  const final = await messages.stream(request).finalMessage();
  assert.ok(final.content[0]?.type === "tool_use");
  assert.deepEqual(final.content[0].input, block.input);
});

Deno.test("documents are ranked by what they share with the query", async () => {
  await using engine = await startSimulation();
  const ranked = await (await engine.post("/v1/rerank", {
    model: "tiny",
    query: "warp and weft",
    documents: ["zymurgy", "warp and woof"],
  })).json();
  assert.deepEqual(ranked.results.map(({ index }: { index: number }) => index), [1, 0]);
  assert.equal(ranked.usage.completion_tokens, undefined);
  const best = await (await engine.post("/v2/rerank", {
    model: "tiny",
    query: "warp",
    documents: ["weft", "warp"],
    top_n: 1,
  })).json();
  assert.equal(best.results.length, 1);
  const scored = await (await engine.post("/score", {
    model: "tiny",
    text_1: "warp",
    text_2: ["warp", "weft"],
  })).json();
  assert.ok(scored.data[0].score > scored.data[1].score);
  const bad = await engine.post("/score", { model: "tiny", text_1: ["a", "b"], text_2: ["c"] });
  assert.equal(bad.status, 400);
  await bad.body?.cancel();
});

Deno.test("openai gets words for a sound, whole and streamed", async () => {
  await using engine = await startSimulation();
  const { transcriptions } = openai(engine.url).audio;
  const file = new File([new Uint8Array(64_000)], "a.wav");
  const whole = await transcriptions.create({ model: "tiny", file });
  assert.match(whole.text, /^This is a simulated engine, which heard nothing\./);
  const text = await transcriptions.create({ model: "tiny", file, response_format: "text" });
  assert.equal(String(text), whole.text);
  const form = new FormData();
  for (const [name, value] of Object.entries({ model: "tiny", stream: "true" })) {
    form.append(name, value);
  }
  form.append("file", file);
  const response = await fetch(`${engine.url}/v1/audio/transcriptions`, {
    method: "POST",
    body: form,
  });
  const events = dataOf(await response.text());
  assert.equal(events.at(-1), "[DONE]");
  const words = events.slice(0, -1).map((data) => JSON.parse(data).choices[0].delta.content);
  assert.equal(words.join("").trim(), whole.text);
});
