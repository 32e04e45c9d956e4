/**
 * The least that a gateway on this runtime costs: a server of node:http that passes each request on
 * through the router's own client and the answer back, and looks at nothing. What Heddle costs beyond
 * it is Heddle's; what it costs itself is the runtime's.
 *
 *   floor.ts PORT ENGINE_PORT
 */
import http from "node:http";
import type { ServerResponse } from "node:http";
import {
  createUpstreamPool,
  UPSTREAM_DEFAULTS,
  type UpstreamResponse,
} from "../../../router/edge/upstream.ts";

const [port, enginePort] = Deno.args.map(Number);
const target = { host: "127.0.0.1", port: enginePort ?? 0 };
const pool = createUpstreamPool(UPSTREAM_DEFAULTS);
const never = new AbortController().signal;

async function pass(path: string, body: Uint8Array, response: ServerResponse): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await pool.request(target, { method: "POST", path, headers, body }, never);
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) {
    response.writeHead(200, { "content-type": type });
    for await (const part of answer.body) response.write(part);
    response.end();
    return;
  }
  const whole = await wholeOf(answer);
  response.writeHead(200, { "content-type": type, "content-length": whole.length }).end(whole);
}

async function wholeOf({ body }: UpstreamResponse): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return joined(parts);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

http.createServer((request, response) => {
  const parts: Uint8Array[] = [];
  request.on("data", (part: Uint8Array) => parts.push(part));
  request.on("end", () => {
    pass(request.url ?? "/", joined(parts), response).catch(() => response.destroy());
  });
}).listen({ host: "127.0.0.1", port: port ?? 0 });
