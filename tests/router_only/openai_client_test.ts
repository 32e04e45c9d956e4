/** The official client against a router without control, in front of one simulated engine. */
import { equal, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import OpenAI from "openai";
import { eventually, freePorts, metricOf, startRouter, startSim } from "./processes.ts";

const ENGINE_KEY = "sk-heddle-engine-0123456789abcdef";
const CLIENT_KEY = "sk-heddle-client-0123456789abcdef";

Deno.test("the official OpenAI client works against a router without control", async (t) => {
  const state = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(join(state, "engine.key"), `${ENGINE_KEY}\n`, { mode: 0o600 });
    await Deno.writeTextFile(join(state, "keys"), `# clients\n${CLIENT_KEY}\n`, { mode: 0o600 });
    const [port = 0] = freePorts(1);
    await using engine = await startSim({ port, key: ENGINE_KEY });
    await using router = await startRouter(state, {
      endpoints: [{
        name: "box",
        url: `${engine.url}/v1`,
        models: [{ name: "org/demo:x", served_name: "served" }],
        key_file: join(state, "engine.key"),
      }],
      models: [{ name: "org/demo:x", aliases: ["demo"] }],
      keys: { policy: "key_file", file: join(state, "keys") },
    });
    const options = { baseURL: `${router.url}/v1`, maxRetries: 0 };
    const client = new OpenAI({ ...options, apiKey: CLIENT_KEY });
    const messages = [{ role: "user" as const, content: "Say something about looms." }];

    await t.step("a wrong key is refused", async () => {
      const stranger = new OpenAI({ ...options, apiKey: "sk-heddle-wrong" });
      await rejects(stranger.models.list().then(() => {}), OpenAI.AuthenticationError);
    });

    await t.step("models are listed and found, with a slash in the name", async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      equal(ids.join(), "demo,org/demo:x");
      equal((await client.models.retrieve("org/demo:x")).id, "org/demo:x");
    });

    await t.step("chat, plain and streamed", async () => {
      const request = { model: "demo", messages, max_tokens: 16, seed: 3, temperature: 0 };
      const whole = await client.chat.completions.create(request);
      equal(whole.usage?.completion_tokens, 16);
      let text = "";
      for await (
        const chunk of await client.chat.completions.create({ ...request, stream: true })
      ) {
        text += chunk.choices[0]?.delta.content ?? "";
        ok(chunk.choices.length > 0, "a usage chunk that was not asked for");
      }
      equal(text, whole.choices[0]?.message.content);
    });

    await t.step("tools reach the engine, and its calls the client", async () => {
      const answer = await client.chat.completions.create({
        model: "demo",
        messages,
        tools: [{
          type: "function",
          function: { name: "look_up", parameters: { type: "object", properties: {} } },
        }],
        tool_choice: { type: "function", function: { name: "look_up" } },
      });
      const [call] = answer.choices[0]?.message.tool_calls ?? [];
      equal(call?.type === "function" && call.function.name, "look_up");
    });

    await t.step("completions and embeddings", async () => {
      const completion = await client.completions.create({
        model: "demo",
        prompt: "once",
        max_tokens: 4,
      });
      ok((completion.choices[0]?.text ?? "").length > 0);
      const embeddings = await client.embeddings.create({ model: "demo", input: ["a", "b"] });
      equal(embeddings.data.length, 2);
      ok((embeddings.data[0]?.embedding.length ?? 0) > 0);
    });

    await t.step("an unknown model is a NotFoundError with its code", async () => {
      await rejects(
        client.chat.completions.create({ model: "nope", messages }),
        (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found",
      );
    });

    await t.step("a cancelled stream frees the engine within a second", async () => {
      const stream = await client.chat.completions.create({
        model: "demo",
        messages,
        max_tokens: 4_000,
        min_tokens: 4_000,
        stream: true,
      } as OpenAI.ChatCompletionCreateParamsStreaming);
      for await (const _ of stream) break;
      const idle = (url: string, name: string) => async () =>
        await metricOf(url, name) === 0 ? true : undefined;
      await eventually("engine idle", idle(engine.url, "vllm:num_requests_running"), 1_000);
      await eventually("slot free", idle(router.admin, "heddle_router_replica_in_flight"), 1_000);
    });

    await t.step("SIGTERM ends it at once when nothing is in flight", async () => {
      router.signal("SIGTERM");
      equal(await router.exited, 0);
      ok(!router.log().includes(ENGINE_KEY) && !router.log().includes(CLIENT_KEY));
    });
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
