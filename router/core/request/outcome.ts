/** How requests end: a closed set of reasons, the same in metrics, logs and usage records. */
import type { ApiError } from "../engine_error.ts";
import type { LimitDetail } from "../limits/limit_detail.ts";

/** Why a request was not served, told by the router itself. */
export type RefusalReason =
  /** No such path. */
  | "no_route"
  | "method_not_allowed"
  /** No key, or one that is not known. */
  | "unauthenticated"
  /** Two different keys in one request: which one counts would be a guess. */
  | "two_credentials"
  /** The key may not be used from where the request came. */
  | "address_not_allowed"
  /** No key is wanted, and a web page that nobody allowed has sent the request. */
  | "origin_not_allowed"
  /** The key may not use the path. */
  | "path_not_allowed"
  /** The key may not use the model. */
  | "model_not_allowed"
  /** Keys are changed by operators, never through the endpoint. */
  | "read_only"
  /** Control keeps the usage, and is away. */
  | "usage_unavailable"
  /** Control has been away for so long that a revoked key might still be taken for a good one. */
  | "keys_unconfirmed"
  /** A limit on the key's chain: requests at one time, requests per minute, tokens per minute. */
  | "concurrency_limited"
  | "requests_limited"
  | "tokens_limited"
  /** A budget on the key's chain is used up. */
  | "budget_exhausted"
  /** What is left of a budget is reserved by requests that are running. */
  | "budget_reserved"
  | "body_too_large"
  | "body_inflates_too_large"
  | "encoding_unsupported"
  | "encoding_corrupt"
  /** There is no room, or no place, to keep a file until an engine has it. */
  | "upload_unkept"
  /** The client sent less than it announced. */
  | "body_cut"
  /** The body is not what the route takes. */
  | "invalid_request"
  | "model_not_found"
  /** The request continues a response that nobody keeps. */
  | "response_not_found"
  /** The router has no table yet, so that it cannot say what there is. */
  | "not_ready"
  /** The model is known and has no endpoint that may be used. */
  | "model_unavailable"
  /** The router is at its bound of requests in flight. */
  | "in_flight_full"
  /** The model's replicas are full, and so is the band's queue. */
  | "queue_full"
  /** It waited for room for as long as its band may. */
  | "queue_expired"
  | "shutting_down"
  /** Every replica that could be tried says that it is full. */
  | "engine_saturated"
  /** No replica could be connected to. */
  | "engine_unreachable"
  /** A replica failed before any content, and no other could take over. */
  | "engine_failed"
  /** An engine was silent for too long before any content. */
  | "engine_timeout"
  /** No replica of the model serves the path. */
  | "route_unsupported"
  /** An engine refused the router's own key. */
  | "engine_rejects_router"
  /** The answer broke off or turned into an error after content had gone to the client. */
  | "stream_broken"
  /** A bug of the router. */
  | "internal_error";

/** A "no" of the router, with what a client is told. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** A sentence for the client, without a period. */
  readonly message: string;
  /** The member of the request that it is about. */
  readonly param?: string;
  /** Seconds after which trying again makes sense, 1 to 120. */
  readonly retryAfterS?: number;
  /** Trying again changes nothing, and clients are told so. */
  readonly final?: true;
  /** The limit that it is about, for programs. */
  readonly limit?: LimitDetail;
  /** The body was not read to its end, so the connection cannot be used again. */
  readonly unread?: true;
}

/** An engine refused the request for what it says; its own words are the answer. */
export interface EngineRefusal {
  readonly reason: "engine_refused";
  readonly error: ApiError;
}

export type Outcome =
  | { readonly reason: "ok" }
  | { readonly reason: "client_closed" }
  | Refusal
  | EngineRefusal;

export type OutcomeReason = Outcome["reason"];

/** What a stage returns: a value for the next one, or the end of the request. */
export type Step<T> =
  | { readonly kind: "next"; readonly value: T }
  | { readonly kind: "end"; readonly outcome: Outcome };

export function next<T>(value: T): Step<T> {
  return { kind: "next", value };
}

export function refuse(refusal: Refusal): { readonly kind: "end"; readonly outcome: Refusal } {
  return { kind: "end", outcome: refusal };
}

/** The request's client is gone: there is nobody to answer. */
export const CLIENT_CLOSED: { readonly kind: "end"; readonly outcome: Outcome } = {
  kind: "end",
  outcome: { reason: "client_closed" },
};
