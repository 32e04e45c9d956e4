/** An engine that does what a test says, call by call, on a real socket. */
import http from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";

export interface EngineCall {
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  readonly response: ServerResponse;
  /** Resolves when the connection closed before the answer was complete. */
  readonly aborted: Promise<void>;
}

export type EngineScript = (call: EngineCall, index: number) => void | Promise<void>;

export interface ScriptedEngine extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly calls: EngineCall[];
  /** Resolves once there were `count` calls. */
  called(count: number): Promise<void>;
  /** Replaces what later calls get. */
  script(script: EngineScript): void;
}

export async function startEngine(
  script: EngineScript,
  { host = "127.0.0.1", port = 0 }: { readonly host?: string; readonly port?: number } = {},
): Promise<ScriptedEngine> {
  const calls: EngineCall[] = [];
  let current = script;
  let waiters: { count: number; resolve: () => void }[] = [];
  const server = http.createServer(async (request, response) => {
    // A request that is called off while it is sent never was one.
    const body = await bodyOf(request).catch(() => undefined);
    if (body === undefined) return;
    const aborted = new Promise<void>((resolve) => {
      const end = () => {
        if (!response.writableFinished) resolve();
      };
      response.on("close", end);
      if (response.destroyed) end();
    });
    response.on("error", () => {});
    const call = {
      path: request.url ?? "",
      headers: request.headers,
      body,
      response,
      aborted,
    };
    calls.push(call);
    waiters = waiters.filter(({ count, resolve }) => {
      if (calls.length < count) return true;
      resolve();
      return false;
    });
    await current(call, calls.length - 1);
  });
  await new Promise<void>((resolve) => server.listen({ host, port }, resolve));
  const bound = server.address();
  const boundPort = typeof bound === "object" && bound !== null ? bound.port : port;
  return {
    port: boundPort,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    calls,
    called: (count) =>
      calls.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => waiters.push({ count, resolve })),
    script(next) {
      current = next;
    },
    [Symbol.asyncDispose]() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of request) text += decoder.decode(chunk, { stream: true });
  return text;
}

/** A chunk of a chat stream. */
export function chunk(
  delta: Record<string, unknown>,
  finishReason: string | null = null,
  extra: Record<string, unknown> = {},
): string {
  return event({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "served",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...extra,
  });
}

export function event(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

export const USAGE_EVENT = event({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "served",
  choices: [],
  usage: { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 },
});

export const DONE_EVENT = "data: [DONE]\n\n";

/** A whole chat answer of three words. */
export const CHAT_ANSWER = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "served",
  choices: [{
    index: 0,
    message: { role: "assistant", content: "1 2 3" },
    finish_reason: "stop",
  }],
  usage: { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 },
};

/** The events of a good stream, in order. */
export const CHAT_STREAM: readonly string[] = [
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "1" }),
  chunk({ content: " 2" }),
  chunk({ content: " 3" }),
  chunk({}, "stop"),
  USAGE_EVENT,
  DONE_EVENT,
];

export function sendJson(call: EngineCall, status: number, value: unknown): void {
  call.response.writeHead(status, { "content-type": "application/json" });
  call.response.end(JSON.stringify(value));
}

export function openStream(call: EngineCall): void {
  call.response.writeHead(200, { "content-type": "text/event-stream" });
  call.response.flushHeaders();
}

/** Answers as a healthy engine does: a stream or a document, as asked. */
export const HEALTHY: EngineScript = (call) => {
  if (!asksForStream(call)) return sendJson(call, 200, CHAT_ANSWER);
  openStream(call);
  call.response.end(CHAT_STREAM.join(""));
};

export function asksForStream(call: EngineCall): boolean {
  return JSON.parse(call.body).stream === true;
}

/** Cuts the connection, so that the peer sees it break off. */
export function cut(call: EngineCall): void {
  call.response.socket?.destroy();
}
