/**
 * The router's client to engines: HTTP/1.1 over node:net and node:tls, with a small pool. Our own,
 * because relaying is what the router exists for and `fetch` costs 200 µs an event once JavaScript
 * looks at it. Strict: an answer whose framing two parsers could read differently is refused.
 */
import { UpstreamError } from "./upstream_error.ts";

/** Where an engine listens. `host` is a name or an address; IPv6 with or without brackets. */
export interface UpstreamTarget {
  readonly host: string;
  readonly port: number;
  /** Absent: plain TCP. */
  readonly tls?: UpstreamTls;
}

export interface UpstreamTls {
  /** Name to ask for and to verify; `host` when absent. */
  readonly serverName?: string;
  /** PEM of the authorities to trust instead of the built-in ones. */
  readonly ca?: string;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path with query, beginning with "/". */
  readonly path: string;
  /** Without `host` (unless it must differ), `connection`, and anything about the body's framing. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Instead of the pool's, e.g. scaled by the prompt's length. */
  readonly firstByteTimeoutMs?: number;
  readonly idleTimeoutMs?: number;
}

export interface UpstreamResponse {
  readonly status: number;
  /** Lower-cased names; duplicates are joined by ", " (`set-cookie` too). */
  readonly headers: ReadonlyMap<string, string>;
  /**
   * The body without its transfer coding, to be iterated once. Pulls: while nobody asks for more,
   * the engine is held back by TCP. Throws `UpstreamError` (idle_timeout, cut, body_invalid,
   * aborted). Leaving the loop early destroys the connection.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends the connection at once, so that the engine stops. Harmless after the end. */
  destroy(): void;
}

export interface UpstreamOptions {
  readonly connectTimeoutMs: number;
  /** From the request's start to the first byte of the body. */
  readonly firstByteTimeoutMs: number;
  /** Longest silence between two reads of the body, while the caller is reading. */
  readonly idleTimeoutMs: number;
  /** How long an unused connection is kept. Below 5 s, when uvicorn closes its side. */
  readonly keepAliveMs: number;
  readonly headBytesMax: number;
  /** Open connections per target, busy and idle; absent: no bound. */
  readonly connectionsPerTargetMax?: number;
}

export const UPSTREAM_DEFAULTS: UpstreamOptions = {
  connectTimeoutMs: 2_000,
  firstByteTimeoutMs: 300_000,
  idleTimeoutMs: 120_000,
  keepAliveMs: 4_000,
  headBytesMax: 65_536,
};

export interface UpstreamPool extends Disposable {
  /**
   * Sends one request and gives its answer once the head is there. Throws `UpstreamError`. A kept
   * connection that dies before any byte of an answer is replaced once by a fresh one.
   */
  request(
    target: UpstreamTarget,
    request: UpstreamRequest,
    signal: AbortSignal,
  ): Promise<UpstreamResponse>;
  /** Open connections, for gauges and tests. */
  connections(): { busy: number; idle: number };
  /** Closes idle connections to `target`, e.g. because its endpoint is gone. */
  forget(target: UpstreamTarget): void;
}

/** A pool; disposing it destroys every connection. */
export function createUpstreamPool(_options: UpstreamOptions): UpstreamPool {
  throw new UpstreamError("connect_failed", "not built yet");
}
