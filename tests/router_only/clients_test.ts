/** Official clients of every API that the router has, against a router in front of a simulated engine. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { eventually, freePorts, metricOf, startRouter, startSim } from "./processes.ts";

const USER = [{ role: "user" as const, content: "Say something about looms." }];
const PARAMETERS = {
  type: "object" as const,
  properties: { city: { type: "string" } },
  required: ["city"],
};

async function withRouter(
  test: (urls: { router: string; admin: string; engine: string }) => Promise<void>,
): Promise<void> {
  const state = await Deno.makeTempDir();
  try {
    const [port = 0] = freePorts(1);
    await using engine = await startSim({ port, args: ["--sim-overhead-ms", "0"] });
    await using router = await startRouter(state, {
      endpoints: [{
        name: "box",
        url: engine.url,
        models: [{ name: "demo", served_name: "served" }],
      }],
    });
    await test({ router: router.url, admin: router.admin, engine: engine.url });
    const recorded = `heddle_router_requests_total{`;
    ok(await metricOf(router.admin, recorded) > 0);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
}

Deno.test("the official clients of every API work against a router", async (t) => {
  await withRouter(async ({ router, admin, engine }) => {
    const openai = new OpenAI({ baseURL: `${router}/v1`, apiKey: "none", maxRetries: 0 });
    const anthropic = new Anthropic({ baseURL: router, apiKey: "none", maxRetries: 0 });
    const idle = async () => await metricOf(engine, "vllm:num_requests_running") === 0 || undefined;

    await t.step("openai: responses, whole and streamed, with tools", async () => {
      const request = { model: "demo", input: USER, max_output_tokens: 20 };
      const whole = await openai.responses.create(request);
      equal(whole.usage?.output_tokens, 20);
      const stream = openai.responses.stream(request);
      equal((await stream.finalResponse()).output_text, whole.output_text);
      const called = await openai.responses.stream({
        ...request,
        max_output_tokens: 200,
        tools: [{ type: "function", name: "weather", parameters: PARAMETERS, strict: false }],
        tool_choice: "required",
      }).finalResponse();
      const [call] = called.output;
      ok(call?.type === "function_call");
      deepEqual(Object.keys(JSON.parse(call.arguments)), ["city"]);
    });

    await t.step("openai: a response that is not kept is not continued", async () => {
      const request = { model: "demo", input: "x", previous_response_id: "resp_1" };
      await rejects(
        openai.responses.create(request).then(() => {}),
        (error) =>
          error instanceof OpenAI.NotFoundError && error.code === "previous_response_not_found",
      );
      await rejects(
        openai.responses.create({ model: "demo", input: "x", background: true }).then(() => {}),
        (error) => error instanceof OpenAI.BadRequestError && error.param === "background",
      );
    });

    await t.step("openai: a response that is left frees the engine", async () => {
      const stream = await openai.responses.create({
        model: "demo",
        input: USER,
        max_output_tokens: 4_000,
        stream: true,
      });
      for await (const event of stream) if (event.type.endsWith(".delta")) break;
      await eventually("engine idle", idle, 1_000);
    });

    await t.step("openai: transcriptions", async () => {
      const file = new File([new Uint8Array(900_000)], "a.wav");
      const answer = await openai.audio.transcriptions.create({ model: "demo", file });
      match(answer.text, /^This is a simulated engine/);
    });

    await t.step("anthropic: messages, whole and streamed, and their tokens", async () => {
      const request = { model: "demo", messages: USER, system: "Be brief.", max_tokens: 20 };
      const whole = await anthropic.messages.create(request);
      deepEqual([whole.stop_reason, whole.usage.output_tokens], ["max_tokens", 20]);
      const final = await anthropic.beta.messages.stream(request).finalMessage();
      deepEqual(
        final.content.map((block) => block.type === "text" && block.text),
        whole.content.map((block) => block.type === "text" && block.text),
      );
      const { input_tokens } = await anthropic.messages.countTokens({
        model: "demo",
        messages: USER,
        system: "Be brief.",
      });
      equal(input_tokens, whole.usage.input_tokens);
    });

    await t.step("anthropic: tools, and errors of its own kind", async () => {
      const final = await anthropic.messages.stream({
        model: "demo",
        messages: USER,
        max_tokens: 200,
        tools: [{ name: "weather", input_schema: PARAMETERS }],
        tool_choice: { type: "any" },
      }).finalMessage();
      const [call] = final.content;
      ok(call?.type === "tool_use" && typeof call.input === "object");
      await rejects(
        anthropic.messages.create({ model: "nope", messages: USER, max_tokens: 1 }).then(() => {}),
        (error) =>
          error instanceof Anthropic.NotFoundError && error.type === "not_found_error" &&
          (error.requestID ?? "") !== "",
      );
    });

    await t.step("anthropic: a message that is left frees the engine", async () => {
      const stream = anthropic.messages.stream({
        model: "demo",
        messages: USER,
        max_tokens: 4_000,
      });
      for await (const event of stream) if (event.type === "content_block_delta") break;
      stream.abort();
      await eventually("engine idle", idle, 1_000);
      await eventually(
        "slot free",
        async () => await metricOf(admin, "heddle_router_replica_in_flight") === 0 || undefined,
        1_000,
      );
    });

    await t.step("the AI SDK's provider: a stream with its usage and its end", async () => {
      const provider = createOpenAICompatible({
        name: "heddle",
        baseURL: `${router}/v1`,
        includeUsage: true,
      });
      const { stream } = await provider.chatModel("demo").doStream({
        prompt: [{ role: "user", content: [{ type: "text", text: "Say something." }] }],
        maxOutputTokens: 12,
      });
      let text = "";
      let end: unknown;
      for await (const part of stream) {
        ok(part.type !== "error", JSON.stringify(part));
        if (part.type === "text-delta") text += part.delta;
        if (part.type === "finish") {
          end = [part.finishReason.unified, part.usage.outputTokens.total];
        }
      }
      match(text, /^This is a simulated engine/);
      deepEqual(end, ["length", 12]);
    });
  });
});
