/**
 * The one place where an outcome becomes what a client sees, also after the answer has begun: then
 * it is an error event and a close that no client can take for the end.
 */
import type { ApiError } from "../../core/engine_error.ts";
import {
  errorBody,
  errorEvent,
  type ErrorShape,
  type ResponseSoFar,
} from "../../core/engine_error_shape.ts";
import type { EngineRefusal, Outcome, Refusal, RefusalReason } from "../../core/request/outcome.ts";
import type { Reply } from "./reply.ts";

interface Told {
  readonly status: number;
  readonly type: string;
  /** The reason itself, except where official clients know another word. */
  readonly code?: string;
}

const REQUEST = "invalid_request_error";
const SERVER = "server_error";
const PERMISSION = "permission_error";
const RATE = "rate_limit_error";
const RATE_CODE = "rate_limit_exceeded";

const TOLD: Readonly<Record<RefusalReason, Told>> = {
  no_route: { status: 404, type: REQUEST },
  method_not_allowed: { status: 405, type: REQUEST },
  unauthenticated: { status: 401, type: "authentication_error", code: "invalid_api_key" },
  two_credentials: { status: 400, type: REQUEST },
  address_not_allowed: { status: 401, type: "authentication_error" },
  origin_not_allowed: { status: 403, type: PERMISSION },
  path_not_allowed: { status: 403, type: PERMISSION },
  model_not_allowed: { status: 403, type: PERMISSION },
  read_only: { status: 403, type: PERMISSION },
  usage_unavailable: { status: 503, type: SERVER },
  keys_unconfirmed: { status: 503, type: SERVER },
  concurrency_limited: { status: 429, type: RATE, code: RATE_CODE },
  requests_limited: { status: 429, type: RATE, code: RATE_CODE },
  tokens_limited: { status: 429, type: RATE, code: RATE_CODE },
  // Not 429: default clients try that again, whatever the budget says.
  budget_exhausted: { status: 402, type: "insufficient_quota", code: "insufficient_quota" },
  budget_reserved: { status: 429, type: RATE, code: RATE_CODE },
  body_too_large: { status: 413, type: REQUEST },
  body_inflates_too_large: { status: 413, type: REQUEST },
  encoding_unsupported: { status: 415, type: REQUEST },
  encoding_corrupt: { status: 400, type: REQUEST },
  upload_unkept: { status: 503, type: SERVER },
  body_cut: { status: 400, type: REQUEST },
  invalid_request: { status: 400, type: REQUEST },
  model_not_found: { status: 404, type: REQUEST },
  response_not_found: { status: 404, type: REQUEST, code: "previous_response_not_found" },
  not_ready: { status: 503, type: SERVER },
  model_unavailable: { status: 503, type: SERVER },
  queue_full: { status: 429, type: "rate_limit_error" },
  queue_expired: { status: 429, type: "rate_limit_error" },
  in_flight_full: { status: 429, type: RATE },
  shutting_down: { status: 503, type: SERVER },
  engine_saturated: { status: 503, type: SERVER },
  engine_unreachable: { status: 503, type: SERVER },
  engine_failed: { status: 502, type: SERVER },
  engine_timeout: { status: 504, type: SERVER },
  engine_rejects_router: { status: 502, type: SERVER },
  route_unsupported: { status: 400, type: REQUEST },
  stream_broken: { status: 502, type: SERVER },
  internal_error: { status: 500, type: SERVER },
};

/** Reasons for which the rest of a body is not read; see `Refusal.unread`. */
const CLOSES: ReadonlySet<RefusalReason> = new Set([
  "body_too_large",
  "body_inflates_too_large",
  "encoding_unsupported",
  "upload_unkept",
  "body_cut",
]);

/** How clients of a route are told: its envelope, and what a stream has said before it broke. */
export interface Manner {
  readonly shape: ErrorShape;
  /** Of a Responses stream, whose last event repeats it. */
  readonly response?: ResponseSoFar | undefined;
}

/** Tells the client how its request ended, unless it knows already. */
export function rescue(reply: Reply, outcome: Outcome, { shape, response }: Manner): void {
  if (reply.state === "ended") return;
  if (outcome.reason === "ok") throw new Error("A request ended well without an answer");
  if (outcome.reason === "client_closed") return reply.abandon();
  const error = apiError(outcome);
  if (reply.state === "streaming") return reply.break(errorEvent(error, shape, response));
  reply.whole(error.status, headersOf(outcome), errorBody(error, shape));
}

/** The HTTP status of an outcome; 499 for a client that left, as nginx logs it. */
export function statusOf(outcome: Outcome): number {
  if (outcome.reason === "ok") return 200;
  return outcome.reason === "client_closed" ? 499 : apiError(outcome).status;
}

function apiError(outcome: Refusal | EngineRefusal): ApiError {
  if (outcome.reason === "engine_refused") return outcome.error;
  const { status, type, code } = TOLD[outcome.reason];
  return {
    status,
    type,
    message: outcome.message,
    param: outcome.param ?? null,
    code: code ?? outcome.reason,
    ...(outcome.limit === undefined ? {} : { limit: outcome.limit }),
  };
}

function headersOf(outcome: Refusal | EngineRefusal) {
  const refusal: Partial<Refusal> = outcome.reason === "engine_refused" ? {} : outcome;
  return {
    "content-type": "application/json",
    ...(refusal.retryAfterS === undefined ? {} : {
      // Official clients sleep for hours on large values, and not at all on zero.
      "retry-after": String(Math.min(Math.max(Math.ceil(refusal.retryAfterS), 1), 120)),
    }),
    ...(refusal.final === true ? { "x-should-retry": "false" } : {}),
    ...(closes(refusal) ? { connection: "close" } : {}),
  };
}

function closes({ reason, unread }: Partial<Refusal>): boolean {
  return unread === true || reason !== undefined && CLOSES.has(reason);
}
