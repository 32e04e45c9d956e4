/**
 * One connection of a listener: pings it, has its certificate judged, and ends it. It never sends a
 * GOAWAY, neither as a farewell nor by destroying a session: on receiving one, Deno 2.9 may end the
 * whole process of the peer (denoland/deno#36788). A connection is ended by ending its socket, once
 * its streams are over.
 */
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { logger } from "../log.ts";
import { CERTIFICATE_REFUSED } from "./session.ts";

const PING_INTERVAL_MS = 10_000;
/** What was written last still has to get to the peer. */
const GOODBYE_MS = 200;

const log = logger("rpc");

export interface WatchedSessionOptions {
  /** Looks whether the peer's certificate is still good, every now and then. */
  readonly judge: (watch: WatchedSession) => void;
  /** The connection below, once it is known: sessions begin before. Undefined when it has ended. */
  readonly socket: () => Socket | undefined;
  readonly ended: () => void;
}

export class WatchedSession {
  readonly session: ServerHttp2Session;
  readonly #options: WatchedSessionOptions;
  readonly #streams = new Set<ServerHttp2Stream>();
  readonly #timer: ReturnType<typeof setInterval>;
  #goodbye: ReturnType<typeof setTimeout> | undefined;
  #outstanding = false;
  #draining = false;
  #refused = false;

  constructor(session: ServerHttp2Session, options: WatchedSessionOptions) {
    this.session = session;
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), PING_INTERVAL_MS);
    // Clients that cancel a call end their session with an error here; it needs a handler.
    session.on("error", (error: Error) => log.debug("session ended", { error }));
    session.on("close", () => this.stop());
    session.on("stream", (stream: ServerHttp2Stream) => this.#add(stream));
  }

  /** True once its certificate was found to be no good. */
  get refused(): boolean {
    return this.#refused;
  }

  /** Ends every stream with a code that tells the peer why, and then the connection. */
  refuse(): void {
    this.#refused = true;
    for (const stream of this.#streams) stream.close(CERTIFICATE_REFUSED);
    this.#endSoon();
  }

  /** Ends the connection once no stream is open. */
  drain(): void {
    this.#draining = true;
    if (this.#streams.size === 0) this.#endSoon();
  }

  /** Ends the connection and all that is on it. */
  end(): void {
    const socket = this.#options.socket();
    const destroy = () => {
      if (!this.session.destroyed) this.session.destroy();
    };
    if (socket === undefined || socket.destroyed) destroy();
    else socket.once("close", destroy).destroy();
    this.stop();
  }

  /** Looks after it no more. */
  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#goodbye);
    this.#options.ended();
  }

  #add(stream: ServerHttp2Stream): void {
    if (this.#refused) {
      stream.close(CERTIFICATE_REFUSED);
      return;
    }
    this.#streams.add(stream);
    stream.on("close", () => {
      this.#streams.delete(stream);
      if (this.#draining && this.#streams.size === 0) this.#endSoon();
    });
  }

  #endSoon(): void {
    this.#goodbye ??= setTimeout(() => this.end(), GOODBYE_MS);
  }

  #look(): void {
    // One whose connection a browser closed is destroyed without ever saying that it is closed.
    if (this.session.destroyed) return this.stop();
    this.#options.judge(this);
    if (this.#outstanding) return this.end();
    this.#outstanding = true;
    try {
      this.session.ping(() => this.#outstanding = false);
    } catch {
      this.end();
    }
  }
}
