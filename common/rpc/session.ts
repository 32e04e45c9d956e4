/**
 * The HTTP/2 connection below an RPC client. With TLS 1.3 the client's side of a handshake ends
 * before the server has judged its certificate, so a refusal arrives when the connection counts as
 * open: as an error of the socket, of the session, or of neither. Whoever drops its listeners in
 * between, as Connect's own session manager does, lets that error end the process. Here a session
 * has its listeners for as long as it lives, and a refusal is told as what it is.
 */
import http2 from "node:http2";
import net, { type Socket } from "node:net";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { logger } from "../log.ts";

const PING_INTERVAL_MS = 10_000;
const HTTP_PORT = 80;

/** With this code a listener ends the streams of a connection whose certificate is no good any more. */
export const CERTIFICATE_REFUSED = http2.constants.NGHTTP2_INADEQUATE_SECURITY;

const log = logger("rpc");

/** Opens connections to one peer, one at a time, when a request needs one. */
export class RpcSession {
  readonly authority: string;
  readonly #dial: (() => Socket) | undefined;
  #opening: Promise<http2.ClientHttp2Session> | undefined;
  #session: http2.ClientHttp2Session | undefined;
  /** Why the newest connection ended; undefined while nothing has gone wrong. */
  #failure: Error | undefined;
  /** False until the peer has said anything on the newest connection. */
  #heard = false;
  /** True once its handshake has ended well on our side. */
  #secured = false;
  #closed = false;
  #socket: Socket | undefined;

  /** `dial` opens a TLS connection; undefined for plaintext. */
  constructor(authority: string, dial: (() => Socket) | undefined) {
    this.authority = authority;
    this.#dial = dial;
  }

  /** Sends the head of a request. Part of what Connect asks of a session manager. */
  async request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: Omit<http2.ClientSessionRequestOptions, "signal">,
  ): Promise<http2.ClientHttp2Stream> {
    const session = await this.#open();
    const stream = session.request({ ...headers, ":method": method, ":path": path }, options);
    stream.on("error", (error: Error) => log.debug("stream ended", { error }));
    stream.once("response", () => this.#heard = true);
    return stream;
  }

  /** Part of what Connect asks of a session manager. */
  notifyResponseByteRead(): void {}

  /**
   * Ends the connection and every call on it. No other is opened. Without a GOAWAY, by the connection
   * alone: on receiving one, Deno 2.9 may end the whole process of the peer (denoland/deno#36788).
   */
  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
    this.#session?.destroy(undefined, http2.constants.NGHTTP2_CANCEL);
  }

  /** Has calls that failed because of the connection say why. */
  readonly explain: Interceptor = (next) => async (request) => {
    try {
      const response = await next(request);
      if (!response.stream) return response;
      return { ...response, message: this.#explained(response.message) };
    } catch (error) {
      throw this.#why(error);
    }
  };

  async *#explained<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (error) {
      throw this.#why(error);
    }
  }

  #why(error: unknown): unknown {
    const how = this.#howRefused(error);
    if (how === undefined) return error;
    return new ConnectError(
      `the certificate was refused (${how}): it has expired or was struck, or is not of the ` +
        "authority that is trusted there",
      Code.Unauthenticated,
      undefined,
      undefined,
      this.#failure ?? error,
    );
  }

  #howRefused(error: unknown): string | undefined {
    if (this.#closed || !this.#secured) return undefined;
    const { rawMessage } = ConnectError.from(error);
    if (rawMessage.endsWith("error code NGHTTP2_INADEQUATE_SECURITY")) {
      return "the connection was ended";
    }
    if (this.#heard) return undefined;
    const alert = /received fatal alert: (\w+)/.exec(this.#failure?.message ?? "")?.[1];
    // What was given up here says nothing about the other side.
    return alert ?? (isCut(error) ? "closed right after the handshake" : undefined);
  }

  #open(): Promise<http2.ClientHttp2Session> {
    const session = this.#session;
    if (this.#closed) throw new ConnectError("the connection was closed here", Code.Canceled);
    if (this.#opening !== undefined && session?.destroyed !== true && session?.closed !== true) {
      return this.#opening;
    }
    this.#heard = false;
    this.#secured = false;
    this.#failure = undefined;
    const opening = this.#connect();
    this.#opening = opening;
    return opening;
  }

  #connect(): Promise<http2.ClientHttp2Session> {
    const dial = this.#dial;
    const session = http2.connect(
      this.authority,
      {
        createConnection: () => {
          const socket = dial?.() ?? dialPlain(this.authority);
          socket.once("secureConnect", () => this.#secured = true);
          socket.on("error", (error: Error) => this.#failure ??= error);
          this.#socket = socket;
          return socket;
        },
      },
    );
    this.#session = session;
    session.on("remoteSettings", () => {
      if (this.#session === session) this.#heard = true;
    });
    keepAlive(session);
    return new Promise((resolve, reject) => {
      const fail = (reason: Error) => reject(unavailable(this.#failure ?? reason));
      session.on("error", (error: Error) => {
        this.#failure ??= error;
        log.debug("session ended", { error });
        fail(error);
      });
      session.on("close", () => fail(new Error("the connection was closed")));
      session.on("connect", () => {
        // One that was refused meanwhile is open in name only.
        if (!session.destroyed) resolve(session);
      });
    });
  }
}

function dialPlain(authority: string): Socket {
  const { hostname, port } = new URL(authority);
  return net.connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || HTTP_PORT) });
}

// A peer that vanished behind a firewall says nothing, and neither does the system for minutes.
function keepAlive(session: http2.ClientHttp2Session): void {
  let outstanding = false;
  const timer = setInterval(() => {
    if (session.connecting) return;
    if (outstanding) {
      session.destroy(new Error(`no answer to a ping within ${PING_INTERVAL_MS / 1_000} s`));
      return;
    }
    try {
      outstanding = session.ping((error) => {
        if (error === null) outstanding = false;
      });
    } catch {
      session.destroy();
    }
  }, PING_INTERVAL_MS);
  session.on("close", () => clearInterval(timer));
}

// By the connection's end, and not by a limit or a signal of ours.
function isCut(error: unknown): boolean {
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Canceled) return rawMessage.startsWith("http/2 stream closed");
  return code !== Code.DeadlineExceeded;
}

function unavailable(reason: Error): ConnectError {
  return new ConnectError(reason.message, Code.Unavailable, undefined, undefined, reason);
}
