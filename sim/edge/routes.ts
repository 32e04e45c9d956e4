/** What each path answers with. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { transcriptionJob } from "../core/audio/transcription.ts";
import { chatJob } from "../core/chat/request.ts";
import { completionJob } from "../core/openai/completion.ts";
import { embeddingJob } from "../core/pooling/embedding.ts";
import { countTokens, messagesJob } from "../core/messages/request.ts";
import { responsesJob } from "../core/responses/request.ts";
import type { Job, RequestHead } from "../core/openai/job.ts";
import { modelCards, type ServedModel } from "../core/openai/model.ts";
import { RequestError } from "../core/openai/request_error.ts";
import { rerankJob, scoreJob } from "../core/pooling/rank.ts";
import { detokenize, tokenize } from "../core/openai/tokenize.ts";
import type { Route } from "./http_server.ts";
import { readForm } from "./form_body.ts";
import { sendJson, sendText } from "./reply.ts";
import { readBody } from "./request_body.ts";

/** The engine behind the routes. */
export interface Host {
  readonly model: ServedModel;
  readonly version: string;
  /** Unix seconds at which the model was loaded. */
  readonly created: number;
  /** Status of /health. */
  health(): number;
  /** Model cards as /v1/models should show them; a fault may lie about them. */
  listedNames(): readonly string[];
  /** Prometheus text. */
  metrics(): string;
  /** Requests that are being answered. */
  load(): number;
  /** Takes a job on and answers it. @throws RequestError when it takes none. */
  accept(job: Job, request: IncomingMessage, response: ServerResponse): void;
}

type ReadJob = (model: ServedModel, text: string, head: RequestHead) => Job;

const PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8";

/** The routes of one engine. */
export function routesOf(host: Host): readonly Route[] {
  const inference = (path: string, prefix: string, read: ReadJob): Route => ({
    method: "POST",
    path,
    handle: async (request, response) => {
      const head = headOf(request, prefix);
      host.accept(read(host.model, await readBody(request), head), request, response);
    },
  });
  const answer = (path: string, read: (model: ServedModel, text: string) => object): Route => ({
    method: "POST",
    path,
    handle: async (request, response) =>
      sendJson(response, 200, read(host.model, await readBody(request))),
  });
  return [
    inference("/v1/chat/completions", "chatcmpl-", chatJob),
    inference("/v1/completions", "cmpl-", completionJob),
    inference("/v1/embeddings", "embd-", embeddingJob),
    inference("/v1/responses", "resp_", responsesJob),
    inference("/v1/messages", "msg_", messagesJob),
    answer("/v1/messages/count_tokens", countTokens),
    ...["/v1/rerank", "/v2/rerank", "/rerank"].map((path) => inference(path, "rerank-", rerankJob)),
    ...["/v1/score", "/score"].map((path) => inference(path, "score-", scoreJob)),
    ...["transcriptions", "translations"].map((kind): Route => ({
      method: "POST",
      path: `/v1/audio/${kind}`,
      handle: async (request, response) => {
        const head = headOf(request, "trsc-");
        const job = transcriptionJob(host.model, await readForm(request), head);
        host.accept(job, request, response);
      },
    })),
    answer("/tokenize", tokenize),
    answer("/detokenize", detokenize),
    ...["GET", "POST"].map((method): Route => ({
      method: method === "GET" ? "GET" : "POST",
      path: "/ping",
      handle: (_, response) => sendHealth(host, response),
    })),
    { method: "GET", path: "/health", handle: (_, response) => sendHealth(host, response) },
    {
      method: "GET",
      path: "/version",
      handle: (_, response) => sendJson(response, 200, { version: host.version }),
    },
    {
      method: "GET",
      path: "/load",
      handle: (_, response) => sendJson(response, 200, { server_load: host.load() }),
    },
    {
      method: "GET",
      path: "/metrics",
      handle: (_, response) => sendText(response, 200, { type: PROMETHEUS, text: host.metrics() }),
    },
    {
      method: "GET",
      path: "/v1/models",
      handle: (_, response) => sendJson(response, 200, { object: "list", data: cards(host) }),
    },
    {
      method: "GET",
      path: "/v1/models/*",
      handle: (request, response) => sendJson(response, 200, card(host, request.url ?? "")),
    },
  ];
}

function sendHealth(host: Host, response: ServerResponse): void {
  sendText(response, host.health(), { type: "text/plain", text: "" });
}

function cards(host: Host): ReturnType<typeof modelCards> {
  const names = host.listedNames();
  const known = modelCards(host.model, host.created);
  const [first] = known;
  if (first === undefined) return [];
  return names.map((id) => known.find((one) => one.id === id) ?? { ...first, id });
}

function card(host: Host, url: string): object {
  const tail = (url.split("?", 1)[0] ?? "").slice("/v1/models/".length);
  const id = decoded(tail);
  const found = cards(host).find((one) => one.id === id);
  if (found !== undefined) return found;
  throw new RequestError(404, `The model \`${id}\` does not exist.`, "model");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

let serial = 0;

/** vLLM takes a client's X-Request-Id as the request's id, so that logs on both sides can be joined. */
function headOf(request: IncomingMessage, prefix: string): RequestHead {
  const given = request.headers["x-request-id"];
  const id = typeof given === "string" && given !== ""
    ? given
    : crypto.randomUUID().replaceAll("-", "");
  serial += 1;
  return { id: `${prefix}${id}`, key: String(serial), created: Math.floor(Date.now() / 1000) };
}
