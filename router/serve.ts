/**
 * One request, from its first byte to its record: authenticate → read → parse → resolve → limit →
 * admit → schedule and forward → account. Each stage takes what the one before returned.
 */
import type { IncomingMessage } from "node:http";
import { logger } from "@heddle/common/log";
import { type BandPolicy, standingOf } from "./core/admission/standing.ts";
import type { Hash64 } from "./core/affinity/blocks.ts";
import { parseForm } from "./core/form/form_request.ts";
import { ANONYMOUS, type Caller } from "./core/request/caller.ts";
import { forwardedHeaders } from "./core/request/forwarded_headers.ts";
import { CLIENT_CLOSED, next, type Outcome, refuse, type Step } from "./core/request/outcome.ts";
import { type ParsedRequest, parseRequest, type RequestPolicy } from "./core/request/request.ts";
import type { InferenceRoute } from "./core/request/route.ts";
import type { Attempt, UsageRecord } from "./core/request/usage_record.ts";
import { askOf } from "./core/schedule/ask.ts";
import type { ProfileWeights } from "./core/schedule/routing_profile.ts";
import { type Resolved, resolveModel } from "./core/schedule/resolve.ts";
import { type BodyLimits, readBody } from "./edge/body/body_reader.ts";
import type { Keyring } from "./edge/client/keys.ts";
import type { Reply } from "./edge/client/reply.ts";
import { rescue, statusOf } from "./edge/client/rescue.ts";
import { type FormLimits, readForm, type ReceivedForm } from "./edge/upload/form_reader.ts";
import type { RequestTrace, Traces } from "./edge/observe/traces.ts";
import type { Stage } from "./edge/observe/router_metrics.ts";
import type { Endpoints } from "./endpoints.ts";
import { forward, type Forwarded, type ForwardParts } from "./forward.ts";
import type { Admitted, Queue } from "./queue.ts";
import { allowedModels, type Limits, type Reservation } from "./tenancy/limits.ts";

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
  readonly costMicro: number;
  /** How it was admitted; undefined where it did not come so far. */
  readonly rank?: {
    readonly band: string;
    readonly routingProfile: string;
    readonly queueMs?: number;
  };
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
    costMicro: 0,
  };
  try {
    ended = await travel(exchange, parts, { startedAt, trace });
  } catch (error) {
    logger("router").error("A request hit a bug", { requestId: exchange.requestId, error });
  } finally {
    const { errors: shape } = exchange.route;
    rescue(exchange.reply, ended.outcome, { shape, response: ended.forwarded?.response });
    const record = recordOf(exchange, ended, parts.now() - startedAt);
    trace?.end(record, record.status);
    parts.account(record);
  }
}

interface Begun {
  readonly startedAt: number;
  readonly trace: RequestTrace | undefined;
}

async function travel(exchange: Exchange, parts: ServeParts, begun: Begun): Promise<Ended> {
  const { route, request, reply } = exchange;
  const timed = stageTimer(parts);
  const known = { caller: ANONYMOUS, parsed: undefined, forwarded: undefined, costMicro: 0 };

  const from = { address: exchange.clientAddress, path: route.path };
  const caller = timed("authenticate", parts.keyring().authenticate(request.headersDistinct, from));
  if (caller.kind === "end") return { ...known, outcome: caller.outcome };
  const body = timed("read", await read(exchange, parts));
  const ends = (outcome: Outcome): Ended => {
    // Told on every answer; a request that goes on is told once it has reserved.
    setHeaders(reply, parts.limits.headers(caller.value));
    return { ...known, caller: caller.value, outcome };
  };
  if (body.kind === "end") return ends(body.outcome);
  using received = body.value;
  const parsed = timed("parse", parse(route, received, parts.requestPolicy));
  if (parsed.kind === "end") return ends(parsed.outcome);
  setHeaders(reply, parsed.value.answerHeaders);
  const readable = { ...known, caller: caller.value, parsed: parsed.value };
  const resolved = timed("resolve", resolve(parts.endpoints, readable, request));
  if (resolved.kind === "end") return { ...ends(resolved.outcome), parsed: parsed.value };

  const running = await run(exchange, parts, {
    ...begun,
    timed,
    caller: caller.value,
    received,
    parsed: parsed.value,
    resolved: resolved.value,
  });
  return { ...readable, ...running };
}

/** A request that may be asked of engines, once it is let in. */
interface Runnable extends Begun {
  readonly timed: StageTimer;
  readonly caller: Caller;
  readonly received: Received;
  readonly parsed: ParsedRequest;
  readonly resolved: Resolved;
}

type Ran = Pick<Ended, "outcome"> & Partial<Ended>;

async function run(exchange: Exchange, parts: ServeParts, its: Runnable): Promise<Ran> {
  const { request, reply } = exchange;
  const { caller, parsed, received, resolved, timed } = its;
  const [first] = resolved.models;
  const asking = { caller, request: parsed, model: first };
  const reserved = timed("limit", await parts.limits.reserve(asking, reply.gone));
  setHeaders(reply, parts.limits.headers(caller));
  if (reserved.kind === "end") {
    if ("limit" in reserved.outcome) parts.metrics.limited(reserved.outcome.limit);
    return { outcome: reserved.outcome };
  }
  using reservation = reserved.value;
  using _heartbeats = parsed.stream ? reply.keepAlive() : undefined;
  const wishes = { caller, headers: request.headers, request: parsed };
  const standing = standingOf({
    ...wishes,
    model: first,
    bytes: received.kind === "json" ? received.bytes.length : 0,
  }, parts.bandPolicy);
  const ask = askOf(
    { ...wishes, modelProfile: first.routingProfile },
    parts.profiles,
    parts.hash,
  );
  const admitted = timed("admit", await parts.queue.admit(resolved, standing, reply.gone));
  const rank = { band: standing.band, routingProfile: ask.profile };
  if (admitted.kind === "end") return { outcome: admitted.outcome, rank };
  using place = admitted.value;
  parts.metrics.waited(first.name, standing.band, place.waitedMs);
  const forwarded = timed(
    "forward",
    await forward(reply, {
      ...its,
      request: parsed,
      spool: received.kind === "form" ? received.spool : undefined,
      headers: forwardedHeaders(exchange.route, request.headers),
      requestId: exchange.requestId,
      models: place.models,
      mayUse: (model) => reservation.moveTo(model),
      promptTokens: (model) => parts.limits.promptTokens(model, parsed),
      ask,
      explain: caller.mayExplain && asks(request.headers["x-heddle-explain"])
        ? { band: standing.band, waitedMs: place.waitedMs, why: place.why }
        : undefined,
    }, parts),
  );
  const costMicro = settled(forwarded, { reservation, place });
  return {
    outcome: forwarded.outcome,
    forwarded,
    costMicro,
    rank: { ...rank, queueMs: place.waitedMs },
  };
}

/** The try that served is what is paid for. Returns what it costs. */
function settled(
  { attempts }: Forwarded,
  { reservation, place }: { readonly reservation: Reservation; readonly place: Admitted },
): number {
  const attempt = attempts.find(({ served }) => served);
  const usage = attempt?.usage;
  if (attempt === undefined || usage === undefined) return 0;
  place.settle(usage.promptTokens + usage.completionTokens);
  return reservation.settle({ ...attempt, usage });
}

function setHeaders(reply: Reply, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) reply.setHeader(name, value);
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

type StageTimer = <T>(stage: Stage, value: T) => T;

/** Tells how long each stage took: the time since the one before. */
function stageTimer({ metrics, now }: ServeParts): StageTimer {
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
  { caller, parsed: { model } }: { readonly caller: Caller; readonly parsed: ParsedRequest },
  { headers }: IncomingMessage,
): Step<Resolved> {
  if (!informed) return NOT_READY;
  const fallbacks = headers["x-heddle-no-fallback"] === undefined;
  const resolved = resolveModel(table, model, { fallbacks });
  return resolved === undefined ? modelNotFound(model) : allowedModels(caller, resolved);
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

function recordOf(exchange: Exchange, ended: Ended, durationMs: number): UsageRecord {
  const { caller, parsed, forwarded, outcome, costMicro, rank } = ended;
  const attempts: readonly Attempt[] = forwarded?.attempts ?? [];
  const served = attempts.find((attempt) => attempt.served);
  return {
    requestId: exchange.requestId,
    caller: caller.id,
    key: caller.key,
    clientAddress: exchange.clientAddress,
    route: exchange.route.name,
    modelAsked: parsed?.model ?? "",
    model: forwarded?.model ?? "",
    replicaId: forwarded?.replicaId ?? "",
    pool: forwarded?.pool ?? "",
    outcome: outcome.reason,
    stream: parsed?.stream ?? false,
    status: statusOf(outcome),
    tries: attempts.length,
    attempts,
    usage: served?.usage,
    estimated: served?.estimated ?? false,
    costMicro,
    band: rank?.band ?? "",
    routingProfile: rank?.routingProfile ?? "",
    queueMs: rank?.queueMs ?? 0,
    durationMs,
    firstContentMs: forwarded?.firstContentMs,
  };
}
