/** Why a request to an engine failed: a closed reason, and words for the log. */

/**
 * Up to `first_byte_timeout` nothing of an answer was given to the caller, so that the request may
 * be tried elsewhere; the last three happen after the head was given out.
 */
export type UpstreamFailure =
  /** The request cannot be written as HTTP/1.1: a bug or a hostile header value. */
  | "request_invalid"
  /** All connections that `connectionsPerTargetMax` allows are in use. */
  | "connections_full"
  /** Nothing listens there. */
  | "connect_refused"
  /** No route, no such name, or any other failure to connect but a refusal. */
  | "connect_failed"
  | "connect_timeout"
  /** The TLS handshake failed: certificate, name or protocol. */
  | "tls_failed"
  /** The connection ended before a whole head arrived. */
  | "reset_before_head"
  /** The head is not a strict HTTP/1.1 head, or its framing is ambiguous. */
  | "head_invalid"
  | "head_too_large"
  /** No body byte (or end of an empty body) within `firstByteTimeoutMs` of the request. */
  | "first_byte_timeout"
  /** The caller's signal fired, or the caller destroyed the response. */
  | "aborted"
  /** Silence in the middle of the body for `idleTimeoutMs`, while the caller was reading. */
  | "idle_timeout"
  /** The connection ended before the body did. */
  | "cut"
  /** The chunked framing of the body is broken. */
  | "body_invalid";

/**
 * Thrown by `request()` and by the body's iterator. The message is for the log and may name the
 * engine's address: never show it to a client.
 */
export class UpstreamError extends Error {
  readonly reason: UpstreamFailure;

  constructor(reason: UpstreamFailure, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "UpstreamError";
    this.reason = reason;
  }
}
