/** An OpenAI endpoint that answers every chat with the same words, a word at a time. */
import http from "node:http";

export interface Endpoint extends AsyncDisposable {
  readonly url: string;
  /** What it was asked, newest last. */
  readonly asked: readonly { readonly body: string; readonly authorization: string }[];
}

export async function startEndpoint(words: readonly string[]): Promise<Endpoint> {
  const asked: { body: string; authorization: string }[] = [];
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    asked.push({ body, authorization: request.headers.authorization ?? "" });
    if (/"nowhere"/.test(body)) {
      response.writeHead(503, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "no endpoint for model nowhere" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`);
    for (const content of words) send({ choices: [{ delta: { content } }] });
    send({ choices: [], usage: { completion_tokens: words.length } });
    response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  return {
    asked,
    url: `http://127.0.0.1:${port}/v1`,
    [Symbol.asyncDispose]() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
