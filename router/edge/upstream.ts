/**
 * The router's client to engines: HTTP/1.1 over node:net and node:tls, with a small pool. Our own,
 * because relaying is what the router exists for and `fetch` costs 200 µs an event once JavaScript
 * looks at it. Strict: an answer whose framing two parsers could read differently is refused.
 */
import { connect } from "./upstream_connect.ts";
import { type Answer, type Exchange, UpstreamConnection } from "./upstream_connection.ts";
import { UpstreamError } from "./upstream_error.ts";
import { IdleConnections } from "./upstream_idle.ts";
import { inflated } from "./upstream_inflate.ts";
import { requestHead, type UpstreamRequest, type UpstreamTarget } from "./upstream_request.ts";

export interface UpstreamResponse {
  readonly status: number;
  /**
   * Lower-cased names; duplicates are joined by ", ". When the engine compressed the body against
   * our wish, `content-encoding` and `content-length` are gone from here and the body is plain.
   */
  readonly headers: ReadonlyMap<string, string>;
  /**
   * The body without its codings, to be iterated once. Pulls: while nobody asks for more, the
   * engine is held back by TCP. Throws `UpstreamError` (first_byte_timeout, idle_timeout, cut,
   * body_invalid, aborted). Leaving the loop early destroys the connection.
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

/**
 * How soon after a request a kept connection must die to count as stale. One that dies later had
 * its request read, and sending it again could bring down a second engine.
 */
const STALE_WINDOW_MS = 2_000;

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
export function createUpstreamPool(options: UpstreamOptions): UpstreamPool {
  return new Pool(options);
}

class Pool implements UpstreamPool {
  readonly #options: UpstreamOptions;
  readonly #idle: IdleConnections<UpstreamConnection>;
  /** Connections in use or being opened, per target, and all in use, to destroy them at the end. */
  readonly #busyOf = new Map<string, number>();
  readonly #busy = new Map<UpstreamConnection, string>();
  readonly #disposed = new AbortController();

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#idle = new IdleConnections(options.keepAliveMs);
  }

  async request(
    target: UpstreamTarget,
    request: UpstreamRequest,
    signal: AbortSignal,
  ): Promise<UpstreamResponse> {
    const head = requestHead(target, request);
    if (signal.aborted || this.#disposed.signal.aborted) {
      throw new UpstreamError("aborted", "The request was called off");
    }
    const exchange: Exchange = {
      head,
      body: request.body,
      method: request.method,
      headBytesMax: this.#options.headBytesMax,
      firstByteTimeoutMs: request.firstByteTimeoutMs ?? this.#options.firstByteTimeoutMs,
      idleTimeoutMs: request.idleTimeoutMs ?? this.#options.idleTimeoutMs,
      signal,
    };
    return response(await this.#answer(target, exchange));
  }

  connections(): { busy: number; idle: number } {
    let busy = 0;
    for (const count of this.#busyOf.values()) busy += count;
    return { busy, idle: this.#idle.size };
  }

  forget(target: UpstreamTarget): void {
    this.#idle.drop(keyOf(target));
  }

  [Symbol.dispose](): void {
    this.#disposed.abort();
    this.#idle.dropAll();
    for (const connection of [...this.#busy.keys()]) connection.destroy();
  }

  async #answer(target: UpstreamTarget, exchange: Exchange): Promise<Answer> {
    const key = keyOf(target);
    const kept = this.#idle.take(key);
    if (kept === undefined) return (await this.#open(target, exchange.signal)).send(exchange);
    this.#take(kept, key);
    const sentAt = performance.now();
    try {
      return await kept.send(exchange);
    } catch (error) {
      const stale = error instanceof UpstreamError && error.reason === "reset_before_head" &&
        !kept.answered && performance.now() - sentAt < STALE_WINDOW_MS;
      if (!stale) throw error;
    }
    return (await this.#open(target, exchange.signal)).send(exchange);
  }

  async #open(target: UpstreamTarget, signal: AbortSignal): Promise<UpstreamConnection> {
    const key = keyOf(target);
    const where = `${target.host}:${target.port}`;
    const max = this.#options.connectionsPerTargetMax;
    const open = (this.#busyOf.get(key) ?? 0) + this.#idle.sizeOf(key);
    if (max !== undefined && open >= max) {
      throw new UpstreamError("connections_full", `All ${max} connections to ${where} are in use`);
    }
    this.#count(key, 1);
    try {
      // Only here, since joining signals costs more than all else that a kept connection needs.
      const either = AbortSignal.any([signal, this.#disposed.signal]);
      const socket = await connect(target, this.#options.connectTimeoutMs, either);
      const connection = new UpstreamConnection(socket, where, {
        free: (connection, keepMs) => {
          this.#release(connection);
          this.#idle.add(key, connection, keepMs);
        },
        gone: (connection) => {
          this.#release(connection);
          this.#idle.remove(key, connection);
        },
      });
      this.#busy.set(connection, key);
      return connection;
    } catch (error) {
      this.#count(key, -1);
      throw error;
    }
  }

  #take(connection: UpstreamConnection, key: string): void {
    this.#busy.set(connection, key);
    this.#count(key, 1);
  }

  /** Once for each time it was taken or opened; again is harmless. */
  #release(connection: UpstreamConnection): void {
    const key = this.#busy.get(connection);
    if (key === undefined) return;
    this.#busy.delete(connection);
    this.#count(key, -1);
  }

  #count(key: string, by: number): void {
    const count = (this.#busyOf.get(key) ?? 0) + by;
    if (count === 0) this.#busyOf.delete(key);
    else this.#busyOf.set(key, count);
  }
}

/** Targets that share connections: the same address, and the same trust. */
function keyOf({ host, port, tls }: UpstreamTarget): string {
  return tls === undefined
    ? `${host} ${port}`
    : `${host} ${port} tls ${tls.serverName ?? ""} ${tls.ca ?? ""}`;
}

function response({ head, body }: Answer): UpstreamResponse {
  const destroy = (): void => void body.return();
  return { status: head.status, destroy, ...inflated(head.headers, body) };
}
