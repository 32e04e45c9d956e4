import { deepEqual, match } from "node:assert/strict";
import { ask, type BenchTarget } from "./ask.ts";

const EVENTS = [
  { choices: [{ delta: { role: "assistant" } }] },
  { choices: [{ delta: { content: "a" } }] },
  { choices: [{ delta: { content: "b" }, finish_reason: "length" }] },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } },
].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + "data: [DONE]\n\n";

function bench(answeredBy: string | undefined) {
  const asked: Headers[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    asked.push(request.headers);
    const headers = answeredBy === undefined ? {} : { "x-heddle-replica": answeredBy };
    return new Response(EVENTS, { headers });
  });
  const target: BenchTarget = {
    base: `http://127.0.0.1:${server.addr.port}`,
    model: "m",
    key: undefined,
    ignoreEos: false,
    replica: undefined,
  };
  return {
    asked,
    ask: (replica: string | undefined) =>
      ask(
        { ...target, replica },
        { messages: [{ role: "user", content: "hi" }], maxTokens: 2 },
        AbortSignal.timeout(5_000),
      ),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("ask() times an answer, and wants no fallback's", async () => {
  await using server = await bench(undefined);
  const { completionTokens, error } = await server.ask(undefined);
  deepEqual([completionTokens, error], [2, undefined]);
  deepEqual(
    server.asked.map((headers) => [
      headers.get("x-heddle-replica"),
      headers.get("x-heddle-no-fallback"),
    ]),
    [[null, "1"]],
  );
});

Deno.test("ask() takes the answer of the replica that it names, and no other's", async () => {
  await using server = await bench("m-1");
  deepEqual((await server.ask("m-1")).error, undefined);
  const { error, completionTokens } = await server.ask("m-2");
  match(error ?? "", /^replica m-1 answered, not m-2: the key may not choose one; .*--may-explain/);
  deepEqual(completionTokens, 0);
});

Deno.test("ask() says why nothing answered, without the runtime's layers", async () => {
  const gone = await bench(undefined);
  await gone[Symbol.asyncDispose]();
  match(
    (await gone.ask(undefined)).error ?? "",
    /^http:\S+: tcp connect error: Connection refused$/,
  );
});
