/** The official client against a whole Heddle. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import OpenAI from "openai";
import { eventually, Heddle, reserve } from "./heddle.ts";

Deno.test("the official OpenAI client works against up", async (t) => {
  await using place = await reserve();
  await using heddle = await Heddle.start(place);
  const client = new OpenAI({ baseURL: heddle.openaiUrl, apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Say something about looms." }];

  await t.step("models are listed, with what an alias means", async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    ok(ids.includes("demo"), ids.join());
    equal((await client.models.retrieve("demo")).id, "demo");
  });

  await t.step("chat answers with text and usage", async () => {
    const answer = await client.chat.completions.create({
      model: "demo",
      messages,
      max_tokens: 20,
    });
    ok((answer.choices[0]?.message.content ?? "").length > 0);
    ok((answer.usage?.prompt_tokens ?? 0) > 0);
    equal(answer.model, "demo");
  });

  await t.step("an alias answers as the model it means", async () => {
    const answer = await client.chat.completions.create({
      model: "default",
      messages,
      max_tokens: 5,
    });
    ok((answer.choices[0]?.message.content ?? "").length > 0);
  });

  await t.step(
    "streamed chat gives the same text piece by piece, and usage only when asked",
    async () => {
      const request = { model: "demo", messages, max_tokens: 24, seed: 7, temperature: 0 };
      const whole = await client.chat.completions.create(request);
      for (const include_usage of [false, true]) {
        const stream = await client.chat.completions.create({
          ...request,
          stream: true,
          ...(include_usage ? { stream_options: { include_usage } } : {}),
        });
        let text = "";
        let chunks = 0;
        let usage = 0;
        let finish: string | null | undefined;
        for await (const chunk of stream) {
          chunks++;
          text += chunk.choices[0]?.delta.content ?? "";
          finish = chunk.choices[0]?.finish_reason ?? finish;
          if (chunk.usage) usage++;
        }
        equal(text, whole.choices[0]?.message.content);
        equal(finish, "length");
        equal(usage, include_usage ? 1 : 0);
        ok(chunks > 5, `${chunks} chunks`);
      }
    },
  );

  await t.step("tools pass through to the engine and back", async () => {
    const answer = await client.chat.completions.create({
      model: "demo",
      messages: [{ role: "user", content: "What is the weather in Bern?" }],
      tools: [{
        type: "function",
        function: {
          name: "get_weather",
          parameters: { type: "object", properties: { city: { type: "string" } } },
        },
      }],
      tool_choice: { type: "function", function: { name: "get_weather" } },
    });
    const [call] = answer.choices[0]?.message.tool_calls ?? [];
    equal(call?.type, "function");
    if (call?.type !== "function") return;
    equal(call.function.name, "get_weather");
    JSON.parse(call.function.arguments);
  });

  await t.step("embeddings come as numbers in both encodings", async () => {
    const input = ["one", "two"];
    const asked = await client.embeddings.create({ model: "demo", input });
    const floats = await client.embeddings.create({
      model: "demo",
      input,
      encoding_format: "float",
    });
    equal(asked.data.length, 2);
    ok((asked.data[0]?.embedding.length ?? 0) > 0);
    deepEqual(
      asked.data[0]?.embedding.map((x) => x.toFixed(4)),
      floats.data[0]?.embedding.map((x) => x.toFixed(4)),
    );
  });

  await t.step("an unknown model is a 404 in OpenAI's shape", async () => {
    await rejects(
      client.chat.completions.create({ model: "no-such-model", messages }),
      (error) => {
        ok(error instanceof OpenAI.NotFoundError);
        equal(error.code, "model_not_found");
        ok(error.requestID);
        return true;
      },
    );
  });

  await t.step("a cancelled stream frees the engine within a second", async () => {
    const [replica] = await heddle.replicas();
    const running = async () => {
      const text = await (await fetch(`http://${replica?.address}/metrics`)).text();
      return Number(/^vllm:num_requests_running\{.*\} (\S+)$/m.exec(text)?.[1]);
    };
    // Longer than the test: an answer that ends by itself would free the engine too.
    const endless = {
      model: "demo",
      messages,
      max_tokens: 4_000,
      ignore_eos: true,
      stream: true as const,
    };
    const stream = await client.chat.completions.create(endless);
    // Leaving a `for await` would already cancel the stream.
    const chunks = stream[Symbol.asyncIterator]();
    for (let content = ""; content === "";) {
      const chunk = await chunks.next();
      ok(!chunk.done);
      content = chunk.value.choices[0]?.delta.content ?? "";
    }
    equal(await eventually("one request runs", async () => await running() || undefined), 1);
    stream.controller.abort();
    await eventually("no request runs", async () => await running() === 0 || undefined, 1_000);
  });

  await t.step("ctl sees what is there", async () => {
    const nodes = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
    equal(nodes.length, 1);
    equal(nodes[0].state, "ready");
    const piped = await heddle.ctl("replicas");
    equal(piped.code, 0);
    equal(piped.stdout.split("\n")[1]?.split("\t")[1], "demo");
    const explained = await heddle.ctl("explain", "default");
    ok(explained.stdout.startsWith("demo: "), explained.stdout);
    const unknown = await heddle.ctl("explain", "dem");
    equal(unknown.code, 1);
    ok(unknown.stderr.includes("demo"), unknown.stderr);
    const ofModel = await heddle.ctl("replicas", "--model", "demo", "--json");
    equal(JSON.parse(ofModel.stdout).length, 1);
    const node = nodes[0].name;
    const [shard] = JSON.parse(ofModel.stdout)[0].shards;
    const sources = (await heddle.ctl("logs", node)).stdout;
    deepEqual(
      sources.split("\n").map((line) => line.split("\t")[0]).filter((name) => name !== ""),
      [
        "SOURCE",
        "agent",
        shard.shard_id,
        `${shard.shard_id}:errors`,
      ],
    );
    ok((await heddle.ctl("logs", node, "agent")).stdout.includes("Shard is ready"));
    ok((await heddle.ctl("logs", node, shard.shard_id)).stdout !== "");
    const nobody = await heddle.ctl("logs", node, "nobody");
    ok(nobody.code === 1 && nobody.stderr.includes('no log of "nobody"; it has: agent,'));
    const wide = (await heddle.ctl("replicas", "-o", "wide")).stdout;
    ok(/\tmem \d+\.\d GiB|\tcpu \d+% mem/.test(wide), wide);
  });
});
