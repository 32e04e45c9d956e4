/**
 * A real llama.cpp server with a real model, where both can be had: HEDDLE_TEST_LLAMA_SERVER and
 * HEDDLE_TEST_LLAMA_MODEL name them. Elsewhere this test is reported as skipped.
 */
import { equal, ok } from "node:assert/strict";
import OpenAI from "openai";
import { Heddle, reserve } from "./heddle.ts";

const server = Deno.env.get("HEDDLE_TEST_LLAMA_SERVER");
const model = Deno.env.get("HEDDLE_TEST_LLAMA_MODEL");

Deno.test({
  name: "a real llama.cpp server answers through Heddle",
  ignore: server === undefined || model === undefined,
  async fn() {
    await using place = await reserve();
    await using heddle = await Heddle.start(place, [
      "--engine",
      "llamacpp",
      "--model",
      model ?? "",
      "--engine-path",
      server ?? "",
    ]);
    const client = new OpenAI({ baseURL: heddle.openaiUrl, apiKey: "none", maxRetries: 0 });
    const request = {
      model: "default",
      max_tokens: 16,
      messages: [{ role: "user" as const, content: "Name a colour." }],
    };
    const answer = await client.chat.completions.create(request);
    ok((answer.usage?.completion_tokens ?? 0) > 0);
    const stream = await client.chat.completions.create({ ...request, stream: true });
    let text = "";
    let finish: string | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    ok(text.length > 0);
    ok(finish === "stop" || finish === "length", String(finish));
    const replica = (await heddle.replicas())[0];
    equal(replica?.state, "ready");
    // The engine demands the replica's key: who goes around Heddle gets nothing.
    const around = await fetch(`http://${replica?.address}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    equal(around.status, 401);
    await around.body?.cancel();
  },
});
