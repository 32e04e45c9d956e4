/**
 * One request, from its first byte to its record: authenticate → read → parse → resolve → limit →
 * admit → schedule and forward → account. Each stage takes what the one before returned.
 */
import type { IncomingMessage } from "node:http";
import { logger } from "@heddle/common/log";
import { reservedTokens } from "./core/admission/reserved_tokens.ts";
import { type BandPolicy, standingOf } from "./core/admission/standing.ts";
import type { Hash64 } from "./core/affinity/blocks.ts";
import { parseForm } from "./core/form/form_request.ts";
import { ANONYMOUS, type Caller } from "./core/request/caller.ts";
import { forwardedHeaders } from "./core/request/forwarded_headers.ts";
import type { Limits } from "./core/request/limit.ts";
import { CLIENT_CLOSED, next, type Outcome, refuse, type Step } from "./core/request/outcome.ts";
import { type ParsedRequest, parseRequest, type RequestPolicy } from "./core/request/request.ts";
import type { InferenceRoute } from "./core/request/route.ts";
import type { UsageRecord } from "./core/request/usage_record.ts";
import { askOf } from "./core/schedule/ask.ts";
import type { ProfileWeights } from "./core/schedule/routing_profile.ts";
import { type Resolved, resolveModel } from "./core/schedule/resolve.ts";
import type { Usage } from "./core/usage.ts";
import { type BodyLimits, readBody } from "./edge/body_reader.ts";
import type { Keyring } from "./edge/client/keys.ts";
import type { Reply } from "./edge/client/reply.ts";
import { rescue, statusOf } from "./edge/client/rescue.ts";
import { type FormLimits, readForm, type ReceivedForm } from "./edge/upload/form_reader.ts";
import type { RequestTrace, Traces } from "./edge/observe/traces.ts";
import type { Stage } from "./edge/observe/router_metrics.ts";
import type { Endpoints } from "./endpoints.ts";
import { forward, type Forwarded, type ForwardParts } from "./forward.ts";
import type { Queue } from "./queue.ts";

export interface Exchange {
  readonly route: InferenceRoute;
  readonly request: IncomingMessage;
  readonly reply: Reply;
  readonly requestId: string;
  readonly clientAddress: string;
}

export interface ServeParts extends ForwardParts {
  readonly keyring: () => Keyring;
  readonly bodyLimits: BodyLimits;
  readonly formLimits: FormLimits;
  readonly requestPolicy: RequestPolicy;
  readonly limits: Limits;
  /** Undefined unless OpenTelemetry is switched on. */
  readonly traces: Traces | undefined;
  readonly queue: Queue;
  readonly bandPolicy: BandPolicy;
  readonly profiles: ProfileWeights;
  readonly hash: Hash64;
  /** Gets exactly one record for each request. */
  readonly account: (record: UsageRecord) => void;
}

/** What is known of a request when it ends. */
interface Ended {
  readonly outcome: Outcome;
  readonly caller: Caller;
  readonly parsed: ParsedRequest | undefined;
  readonly forwarded: Forwarded | undefined;
}

/** Serves one request. Never rejects: what goes wrong is an outcome, told to the client. */
export async function serve(exchange: Exchange, parts: ServeParts): Promise<void> {
  const startedAt = parts.now();
  const trace = parts.traces?.begin(exchange.route, exchange.request.headers);
  let ended: Ended = {
    outcome: { reason: "internal_error", message: `internal error, request ${exchange.requestId}` },
    caller: ANONYMOUS,
    parsed: undefined,
    forwarded: undefined,
  };
  try {
    ended = await travel(exchange, parts, { startedAt, trace });
  } catch (error) {
    logger("router").error("A request hit a bug", { requestId: exchange.requestId, error });
  } finally {
    const { errors: shape } = exchange.route;
    rescue(exchange.reply, ended.outcome, { shape, response: ended.forwarded?.response });
    const record = recordOf(exchange, ended, parts.now() - startedAt);
    trace?.end(record, statusOf(ended.outcome));
    parts.account(record);
  }
}

interface Begun {
  readonly startedAt: number;
  readonly trace: RequestTrace | undefined;
}

async function travel(exchange: Exchange, parts: ServeParts, begun: Begun): Promise<Ended> {
  const { route, request, reply, requestId } = exchange;
  const timed = stageTimer(parts);
  const known = { caller: ANONYMOUS, parsed: undefined, forwarded: undefined };

  const caller = timed("authenticate", parts.keyring().authenticate(request.headers));
  if (caller.kind === "end") return { ...known, outcome: caller.outcome };
  const body = timed("read", await read(exchange, parts));
  if (body.kind === "end") return { ...known, caller: caller.value, outcome: body.outcome };
  using received = body.value;
  const parsed = timed("parse", parse(route, received, parts.requestPolicy));
  if (parsed.kind === "end") return { ...known, caller: caller.value, outcome: parsed.outcome };
  for (const [name, value] of Object.entries(parsed.value.answerHeaders)) {
    reply.setHeader(name, value);
  }
  const readable = { ...known, caller: caller.value, parsed: parsed.value };
  const resolved = timed("resolve", resolve(parts.endpoints, parsed.value, request));
  if (resolved.kind === "end") return { ...readable, outcome: resolved.outcome };

  const reserved = timed(
    "limit",
    // What only counts tokens takes none.
    parts.limits.reserve(caller.value, route.metered ? reservedTokens(parsed.value) : 0),
  );
  if (reserved.kind === "end") return { ...readable, outcome: reserved.outcome };
  using reservation = reserved.value;
  using _heartbeats = parsed.value.stream ? reply.keepAlive() : undefined;
  const [first] = resolved.value.models;
  const wishes = { caller: caller.value, headers: request.headers, request: parsed.value };
  const standing = standingOf({
    ...wishes,
    model: first.name,
    bytes: received.kind === "json" ? received.bytes.length : 0,
  }, parts.bandPolicy);
  const admitted = timed(
    "admit",
    await parts.queue.admit(resolved.value, standing, reply.gone),
  );
  if (admitted.kind === "end") return { ...readable, outcome: admitted.outcome };
  using place = admitted.value;
  parts.metrics.waited(first.name, standing.band, place.waitedMs);
  const forwarded = timed(
    "forward",
    await forward(reply, {
      request: parsed.value,
      spool: received.kind === "form" ? received.spool : undefined,
      headers: forwardedHeaders(route, request.headers),
      requestId,
      models: place.models,
      ask: askOf(
        { ...wishes, modelProfile: first.routingProfile },
        parts.profiles,
        parts.hash,
      ),
      explain: caller.value.mayExplain && asks(request.headers["x-heddle-explain"])
        ? { band: standing.band, waitedMs: place.waitedMs, why: place.why }
        : undefined,
      ...begun,
    }, parts),
  );
  const usage = usageOf(parsed.value, forwarded).usage;
  if (usage !== undefined) {
    reservation.settle(usage);
    place.settle(usage.promptTokens + usage.completionTokens);
  }
  return { ...readable, forwarded, outcome: forwarded.outcome };
}

/** A header that is there and does not say no. */
function asks(header: string | string[] | undefined): boolean {
  return header !== undefined && header !== "0" && header !== "false";
}

/** A body as it came, and what must go with it. */
type Received = ReceivedForm | ReceivedJson;

interface ReceivedJson extends Disposable {
  readonly kind: "json";
  readonly bytes: Uint8Array;
}

async function read(
  { route, request, reply }: Exchange,
  { bodyLimits, formLimits }: ServeParts,
): Promise<Step<Received>> {
  if (route.body === "form") {
    const form = await readForm(request, formLimits);
    if (!reply.gone.aborted) return form;
    if (form.kind === "next") form.value[Symbol.dispose]();
    return CLIENT_CLOSED;
  }
  const body = await readBody(request, bodyLimits);
  if (reply.gone.aborted) return CLIENT_CLOSED;
  return body.kind === "body"
    ? next({ kind: "json", bytes: body.bytes, [Symbol.dispose]() {} })
    : refuse({ reason: body.reason, message: body.detail });
}

function parse(
  route: InferenceRoute,
  received: Received,
  policy: RequestPolicy,
): Step<ParsedRequest> {
  return received.kind === "form"
    ? parseForm(route, received.form, policy)
    : parseRequest(route, received.bytes, policy);
}

/** Tells how long each stage took: the time since the one before. */
function stageTimer({ metrics, now }: ServeParts): <T>(stage: Stage, value: T) => T {
  let last = now();
  return (stage, value) => {
    const at = now();
    metrics.stage(stage, at - last);
    last = at;
    return value;
  };
}

function resolve(
  { table, informed }: Endpoints,
  { model }: ParsedRequest,
  { headers }: IncomingMessage,
): Step<Resolved> {
  if (!informed) return NOT_READY;
  const fallbacks = headers["x-heddle-no-fallback"] === undefined;
  const resolved = resolveModel(table, model, { fallbacks });
  return resolved === undefined ? modelNotFound(model) : next(resolved);
}

/** There is no table yet: no model can be said not to exist. */
export const NOT_READY = refuse({
  reason: "not_ready",
  message: "This router has just started and has not heard from control yet",
  retryAfterS: 1,
});

/** No model has this name, and no alias is spelt so. */
export function modelNotFound(name: string) {
  return refuse({
    reason: "model_not_found",
    message: `The model "${name.slice(0, 256)}" does not exist`,
    param: "model",
  });
}

// The router counts only where the engine does not say; its count is a lower bound.
function usageOf(
  parsed: ParsedRequest | undefined,
  forwarded: Forwarded | undefined,
): { readonly usage: Usage | undefined; readonly estimated: boolean } {
  const work = forwarded?.work;
  if (work === undefined || parsed === undefined || !parsed.route.metered) {
    return { usage: undefined, estimated: false };
  }
  if (work.usage !== undefined) return { usage: work.usage, estimated: false };
  return {
    usage: { promptTokens: parsed.promptTokensEstimate, completionTokens: work.contentEvents },
    estimated: true,
  };
}

function recordOf(exchange: Exchange, ended: Ended, durationMs: number): UsageRecord {
  const { caller, parsed, forwarded, outcome } = ended;
  return {
    requestId: exchange.requestId,
    caller: caller.id,
    clientAddress: exchange.clientAddress,
    route: exchange.route.name,
    modelAsked: parsed?.model ?? "",
    model: forwarded?.model ?? "",
    replicaId: forwarded?.replicaId ?? "",
    outcome: outcome.reason,
    stream: parsed?.stream ?? false,
    tries: forwarded?.tries ?? 0,
    ...usageOf(parsed, forwarded),
    durationMs,
    firstContentMs: forwarded?.firstContentMs,
  };
}
