/**
 * A real vLLM with a model of no size, where one can be had: HEDDLE_TEST_VLLM names its program and
 * HEDDLE_TEST_VLLM_MODEL a folder that `tools/vllm/tiny_model.py` made. A build for processors is
 * enough. Elsewhere this test is reported as skipped.
 */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import OpenAI from "openai";
import { eventually, Heddle, isAlive, reserve, runCommand } from "./heddle.ts";

const program = Deno.env.get("HEDDLE_TEST_VLLM");
const model = Deno.env.get("HEDDLE_TEST_VLLM_MODEL");

const QUESTION = {
  model: "default",
  max_tokens: 16,
  messages: [{ role: "user" as const, content: "Name a colour." }],
};

Deno.test({
  name: "a real vLLM answers through Heddle, is freed by clients that leave, and ends whole",
  ignore: program === undefined || model === undefined,
  async fn(t) {
    await using place = await reserve();
    const flags = ["--engine", "vllm", "--model", model ?? "", "--engine-path", program ?? ""];
    await using heddle = await Heddle.start(place, flags, { readyMs: 400_000 });
    const client = new OpenAI({ baseURL: heddle.openaiUrl, apiKey: "none", maxRetries: 0 });
    const replica = (await heddle.replicas())[0];
    equal(replica?.state, "ready");
    const address = replica?.address ?? "";

    await t.step("whole, streamed, as text, as a response and as a message", async () => {
      const answer = await client.chat.completions.create(QUESTION);
      ok((answer.usage?.completion_tokens ?? 0) > 0);
      const stream = await client.chat.completions.create({ ...QUESTION, stream: true });
      let finish: string | null | undefined;
      for await (const chunk of stream) {
        // Heddle asks for usage itself; who did not ask must not see it.
        equal(chunk.usage ?? null, null);
        finish = chunk.choices[0]?.finish_reason ?? finish;
      }
      match(String(finish), /^(?:stop|length)$/);
      const text = await client.completions.create({
        model: "default",
        prompt: "A",
        max_tokens: 4,
      });
      ok((text.usage?.completion_tokens ?? 0) > 0);
      const response = await client.responses.create({
        model: "default",
        input: "Name a colour.",
        max_output_tokens: 8,
      });
      ok((response.usage?.output_tokens ?? 0) > 0);
      const message = await post(`${heddle.openaiUrl}/messages`, {
        ...QUESTION,
        max_tokens: 8,
      });
      equal(message.type, "message");
      const tokens = await post(`${heddle.openaiUrl.replace("/v1", "")}/tokenize`, {
        model: "default",
        prompt: "colour",
      });
      ok(Number(tokens.count) > 0);
    });

    await t.step("a client that leaves frees the engine", async () => {
      const leave = new AbortController();
      const stream = await client.chat.completions.create(
        { ...QUESTION, max_tokens: 3_500, stream: true, ...{ ignore_eos: true } },
        { signal: leave.signal },
      );
      for await (const _chunk of stream) break;
      leave.abort();
      await eventually("vLLM runs nothing", async () => await running(address) === 0 || undefined);
      const counts = await Promise.all(
        Array.from({ length: 8 }, () => client.chat.completions.create(QUESTION)),
      );
      deepEqual(counts.map(({ object }) => object), Array(8).fill("chat.completion"));
    });

    await t.step("who goes around Heddle gets nothing", async () => {
      const around = await fetch(`http://${address}/v1/models`);
      equal(around.status, 401);
      await around.body?.cancel();
    });

    const pids = await family(replica?.shards[0]?.pid ?? 0);
    ok(pids.length >= 2, `vLLM has processes of its own: ${pids.join()}`);
    await heddle.stop();
    for (const pid of pids) equal(await isAlive(pid), false, `pid ${pid} outlives vLLM`);
  },
});

async function post(url: string, body: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  equal(answer.status, 200, text);
  return JSON.parse(text);
}

async function running(address: string): Promise<number | undefined> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  const value = /^vllm:num_requests_running\{[^}]*\} (\S+)$/m.exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** A process and all below it. */
async function family(pid: number): Promise<readonly number[]> {
  const { stdout } = await runCommand("/bin/ps", ["-e", "-o", "pid=,ppid="]);
  const rows = stdout.trim().split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  const found = [pid];
  for (const each of found) {
    for (const [child = 0, parent] of rows) if (parent === each) found.push(child);
  }
  return found;
}
