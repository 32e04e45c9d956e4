/** What a try that did not serve says: of the replica, and to the client if nothing else helps. */
import type { EngineError } from "../../core/engine_error.ts";
import type { Judgement } from "../../core/fleet/judgement.ts";
import type { Outcome, RefusalReason } from "../../core/request/outcome.ts";
import type { UpstreamError, UpstreamFailure } from "../upstream_error.ts";

export interface Failure {
  readonly judgement: Judgement;
  /** What the client is told when no other replica can take over. */
  readonly outcome: Outcome;
  /** Another replica may do better. False when the request itself is at fault. */
  readonly retryable: boolean;
  /** The request may be what broke the replica; it must not walk through the whole fleet. */
  readonly suspect: boolean;
}

/** What a client is told to wait when the engine does not say. */
const RETRY_AFTER_S = 2;

/** Reads an error that an engine answered. `retryAfterMs` is what it asked for, 0 without. */
export function failureOfEngine({ error, blame }: EngineError, retryAfterMs = 0): Failure {
  switch (blame) {
    case "request":
      return {
        judgement: { kind: "success", retryAfterMs: 0 },
        outcome: { reason: "engine_refused", error },
        retryable: false,
        suspect: false,
      };
    case "saturation":
      return failure("busy", "engine_saturated", {
        message: `Every replica is full: ${error.message}`,
        retryAfterMs,
      });
    case "router":
      return failure("fault", "engine_rejects_router", {
        message: "The engine refuses this router: its key or the model's name is not right",
        retryAfterMs,
      });
    case "route":
      // It lives, and does well what it does; a caller must not be able to open its breaker.
      return {
        judgement: { kind: "success", retryAfterMs: 0 },
        outcome: {
          reason: "route_unsupported",
          message: `The model does not serve this path: ${error.message}`,
        },
        retryable: true,
        suspect: false,
      };
    case "replica":
      return failure("fault", "engine_failed", { message: error.message, retryAfterMs });
    default:
      return blame satisfies never;
  }
}

/** Reads a failure of the connection to an engine. */
export function failureOfUpstream(error: UpstreamError): Failure {
  switch (kindOf(error.reason)) {
    case "connect":
      return failure("connect", "engine_unreachable", {
        message: "No replica could be reached",
      });
    case "busy":
      return failure("busy", "engine_saturated", { message: "Every replica is full" });
    case "timeout":
      return failure("fault", "engine_timeout", {
        message: "The engine was silent for too long",
      });
    case "fault":
      return failure("fault", "engine_failed", {
        message: "The engine broke off before its answer was complete",
      });
  }
}

/**
 * A replica that answers whole where a stream is asked for. It lives, and does well what it does: a
 * caller must not be able to open its breaker.
 */
export function failureOfNoStream(): Failure {
  return {
    judgement: { kind: "success", retryAfterMs: 0 },
    outcome: {
      reason: "route_unsupported",
      param: "stream",
      message: "The model's engine does not stream here: ask without stream",
    },
    retryable: true,
    suspect: false,
  };
}

/** A replica that answered something which makes no sense. */
export function failureOfGarbage(message: string): Failure {
  return failure("fault", "engine_failed", { message });
}

function kindOf(reason: UpstreamFailure): "connect" | "busy" | "timeout" | "fault" {
  switch (reason) {
    case "connect_refused":
    case "connect_failed":
    case "connect_timeout":
    case "tls_failed":
      return "connect";
    case "connections_full":
      return "busy";
    case "first_byte_timeout":
    case "idle_timeout":
      return "timeout";
    case "reset_before_head":
    case "head_invalid":
    case "head_too_large":
    case "cut":
    case "body_invalid":
      return "fault";
    case "request_invalid":
    case "aborted":
      throw new Error(`${reason} says nothing of a replica`);
    default:
      return reason satisfies never;
  }
}

function failure(
  kind: Exclude<Judgement["kind"], "success">,
  reason: RefusalReason,
  options: { message: string; retryAfterMs?: number },
): Failure {
  const { message, retryAfterMs = 0 } = options;
  const busyOrGone = kind !== "fault";
  return {
    judgement: { kind, retryAfterMs },
    outcome: {
      reason,
      message,
      ...(busyOrGone
        ? { retryAfterS: retryAfterMs === 0 ? RETRY_AFTER_S : retryAfterMs / 1_000 }
        : {}),
    },
    retryable: true,
    suspect: kind === "fault",
  };
}
