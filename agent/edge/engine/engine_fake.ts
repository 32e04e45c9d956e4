/** An engine for tests: an HTTP server that answers as it is told to. */
import http from "node:http";
import type { Address } from "@heddle/common/address";

export interface Reply {
  readonly status: number;
  readonly body?: unknown;
}

/** Answers by path; a path without one is not found, and "hang" never answers. */
export type Replies = Readonly<Record<string, Reply | "hang" | "cut">>;

export interface EngineFake extends AsyncDisposable {
  readonly address: Address;
  /** "GET /health Bearer x", in order. */
  readonly asked: readonly string[];
  replies: Replies;
}

export const MODELS: Reply = {
  status: 200,
  body: { object: "list", data: [{ id: "demo", max_model_len: 8192 }] },
};
export const COMPLETION: Reply = { status: 200, body: { choices: [{ index: 0, text: "x" }] } };

/** Starts one; by default it serves model "demo". */
export async function startEngineFake(replies: Replies = {}): Promise<EngineFake> {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(`${request.method} ${path} ${request.headers.authorization ?? "-"}`);
    request.resume();
    const reply = fake.replies[path] ?? { status: 404, body: { error: { message: "no route" } } };
    if (reply === "hang") return;
    if (reply === "cut") {
      response.writeHead(200, { "content-length": "1000" }).write("{");
      response.socket?.destroy();
      return;
    }
    const text = typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body ?? "");
    response.writeHead(reply.status, { "content-type": "application/json" }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const fake: EngineFake = {
    address: { host: "127.0.0.1", port },
    asked,
    replies: {
      "/health": { status: 200, body: "" },
      "/v1/models": MODELS,
      "/v1/completions": COMPLETION,
      ...replies,
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return fake;
}
