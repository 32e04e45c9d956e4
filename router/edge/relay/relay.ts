/** One try: sends a request to one endpoint and relays what comes back. */
import { formatAddress } from "@heddle/common/address";
import { VERSION } from "@heddle/common/version";
import type { Endpoint } from "../../core/fleet/endpoint.ts";
import { readEngineError } from "../../core/engine_error.ts";
import { NO_WORK } from "../../core/request/attempt_usage.ts";
import type { ParsedRequest } from "../../core/request/request.ts";
import { type Failure, failureOfEngine, failureOfGarbage, failureOfUpstream } from "./failure.ts";
import { relayAnswer } from "./relay_answer.ts";
import { relayStream } from "./relay_stream.ts";
import type { Relayed } from "./relayed.ts";
import type { Reply } from "../client/reply.ts";
import { retryAfterMs } from "./retry_after.ts";
import { readWhole } from "./read_whole.ts";
import type { UpstreamPool, UpstreamResponse } from "../upstream.ts";
import type { Spool } from "../upload/spool.ts";
import { upstreamBody } from "../upload/upstream_body_source.ts";
import { UpstreamError } from "../upstream_error.ts";

export interface RelayOptions {
  readonly pool: UpstreamPool;
  readonly endpoint: Endpoint;
  readonly request: ParsedRequest;
  /** Where the body lies that is not in memory. */
  readonly spool: Spool | undefined;
  readonly requestId: string;
  /** What of the client's headers the engine gets. */
  readonly clientHeaders: Readonly<Record<string, string>>;
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Called for each piece of content that the client gets. */
  readonly onContent: () => void;
}

/** An engine's error is a page at most; what is longer is not read to its end. */
const ERROR_BYTES_MAX = 65_536;

/**
 * Sends the request and relays the answer to `reply`. Throws nothing that an engine or a client can
 * cause. Whatever is returned, the connection is free or closed.
 */
export async function relay(reply: Reply, options: RelayOptions): Promise<Relayed> {
  let answer: UpstreamResponse | undefined;
  try {
    answer = await send(options, reply.gone);
    return await relayed(reply, answer, options);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    if (reply.gone.aborted) return { kind: "client_closed", work: NO_WORK };
    if (error.reason === "request_invalid" || error.reason === "aborted") throw error;
    return { kind: "failed", failure: failureOfUpstream(error), work: NO_WORK };
  }
}

async function relayed(
  reply: Reply,
  answer: UpstreamResponse,
  options: RelayOptions,
): Promise<Relayed> {
  const { endpoint, request } = options;
  const secrets = secretsOf(endpoint);
  const headers = {
    "x-heddle-replica": headerValue(endpoint.replicaId),
    "x-heddle-model": headerValue(endpoint.model),
  };
  if (answer.status < 200 || answer.status > 299) {
    return { kind: "failed", failure: await refusal(answer, secrets), work: NO_WORK };
  }
  const encoding = answer.headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity") {
    answer.destroy();
    return {
      kind: "failed",
      failure: failureOfGarbage(`The engine compressed its answer (${encoding}) unasked`),
      work: NO_WORK,
    };
  }
  const type = answer.headers.get("content-type") ?? "";
  if (/^text\/event-stream\b/i.test(type)) {
    // A form's wish the engine may have read otherwise than the router did.
    if (request.route.dialect === undefined || !request.stream && request.route.body === "json") {
      answer.destroy();
      const failure = failureOfGarbage("The engine streamed an answer that was to be whole");
      return { kind: "failed", failure, work: NO_WORK };
    }
    return await relayStream(reply, answer, {
      dialect: request.route.dialect,
      errors: request.route.errors,
      wantsUsage: request.wantsUsage,
      choices: request.choices,
      secrets,
      headers,
      onContent: options.onContent,
    });
  }
  return await relayAnswer(reply, answer, {
    request,
    secrets,
    headers: { ...headers, "content-type": type === "" ? "application/json" : type },
    onContent: options.onContent,
  });
}

function send(options: RelayOptions, signal: AbortSignal): Promise<UpstreamResponse> {
  const { endpoint, request, requestId } = options;
  const { origin } = endpoint;
  return options.pool.request(
    { host: origin.host, port: origin.port, ...(origin.secure ? { tls: {} } : {}) },
    {
      method: "POST",
      path: origin.basePath + request.route.path + request.route.query,
      headers: {
        ...options.clientHeaders,
        "content-type": request.contentType,
        accept: acceptOf(request),
        "accept-encoding": "identity",
        "user-agent": `heddle-router/${VERSION}`,
        "x-request-id": requestId,
        ...(endpoint.apiKey === "" ? {} : { authorization: `Bearer ${endpoint.apiKey}` }),
      },
      body: upstreamBody(request.body(endpoint.servedName), options.spool),
      firstByteTimeoutMs: options.firstByteTimeoutMs,
      idleTimeoutMs: options.idleTimeoutMs,
    },
    signal,
  );
}

function acceptOf({ route, stream }: ParsedRequest): string {
  if (route.body === "form") return "*/*";
  return stream ? "text/event-stream" : "application/json";
}

async function refusal(answer: UpstreamResponse, secrets: readonly string[]): Promise<Failure> {
  const body = await readWhole(answer, ERROR_BYTES_MAX);
  const error = readEngineError({ status: answer.status, body: body.bytes, secrets });
  return failureOfEngine(error, retryAfterMs(answer.headers));
}

// A header holds visible ASCII; a name in another script is percent-encoded.
function headerValue(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : encodeURIComponent(text);
}

// A path as served name, an address and a key say more of the fleet than a client should know.
function secretsOf({ apiKey, origin, servedName }: Endpoint): readonly string[] {
  return [
    apiKey,
    formatAddress(origin),
    origin.host,
    ...(servedName.startsWith("/") ? [servedName] : []),
  ].filter((secret) => secret !== "");
}
