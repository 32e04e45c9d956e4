/**
 * Listeners for Connect RPC over HTTP/2. With TLS every connection shows a certificate of our
 * authority and every handler can ask who the peer is; without TLS only loopback is served. Both
 * ends ping, because a peer that vanished behind a firewall is otherwise never noticed.
 */
import type { IncomingMessage } from "node:http";
import http2 from "node:http2";
import net, { type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import {
  type ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { errorText, HeddleError } from "@heddle/proto/error";
import { toRpc } from "@heddle/proto/error_code";
import { type Address, formatAddress, isLoopback } from "./address.ts";
import {
  formatIdentity,
  type Identity,
  type Role,
  type ShownCertificate,
  shownCertificate,
} from "./identity.ts";
import { logger } from "./log.ts";
import type { TlsMaterial } from "./mtls_files.ts";
import { WatchedSession } from "./rpc/watched_session.ts";

const log = logger("rpc");

/** Who connects and says nothing holds a socket; two minutes, the default, are long for that. */
const HANDSHAKE_MS_MAX = 10_000;

/** Largest message that is read: a registration with 100,000 weights files has some 20 MiB. */
const READ_BYTES_MAX = 64 * 1_024 * 1_024;

/** Who is on the other end of a call. */
export interface Peer {
  /** Undefined when the connection is plaintext on loopback or showed no certificate. */
  readonly identity: Identity | undefined;
  readonly certificate: ShownCertificate | undefined;
  readonly address: string;
}

/** Handlers find their peer under this key: `context.values.get(PEER)`. */
export const PEER = createContextKey<Peer>({
  identity: undefined,
  certificate: undefined,
  address: "",
});

/** Answers one HTTP request, of HTTP/1.1 or HTTP/2. */
export type HttpHandler = ReturnType<typeof connectNodeAdapter>;

export interface RpcServerOptions {
  readonly listen: Address;
  /** Undefined serves plaintext, which is refused anywhere but on loopback. */
  readonly tls: TlsMaterial | undefined;
  readonly routes: (router: ConnectRouter) => void;
  /** Asked before each call, after its certificate was judged. */
  readonly interceptors?: readonly Interceptor[];
  /** Peers of other roles are refused; undefined lets any peer in. */
  readonly roles?: readonly Role[];
  /** True lets peers in that show none; one that is shown must be good all the same. */
  readonly certificateOptional?: boolean;
  /**
   * Why a certificate of our authority is not good any more, e.g. that it was struck; undefined when
   * it is. Asked when a connection opens, and again for as long as it lasts.
   */
  readonly refuses?: (shown: ShownCertificate) => string | undefined;
  /** Answers what is no call of `routes`; without it that is not found. */
  readonly fallback?: (
    request: Parameters<HttpHandler>[0],
    response: Parameters<HttpHandler>[1],
    peer: Peer,
  ) => void;
}

/** A running listener. */
export interface RpcServer {
  /** With the port the system chose when 0 was asked for. */
  readonly address: Address;
  /** New connections see the new certificate; live ones go on. */
  reload(tls: TlsMaterial): void;
  /** Ends connections whose certificate is refused by now. Happens by itself every 10 s. */
  recheck(): void;
  /** What the peers of this moment have shown, one for each connection. */
  peers(): readonly ShownCertificate[];
  /** Stops accepting, gives streams `graceMs` to end, then ends them. */
  close(graceMs: number): Promise<void>;
}

/** Starts a listener. Throws `system` when the address cannot be bound. */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { listen, tls } = options;
  if (tls === undefined && !isLoopback(listen.host)) {
    throw new HeddleError(
      "invalid_input",
      `Cannot listen on ${formatAddress(listen)}: without TLS only loopback is allowed`,
    );
  }
  const handler = handlerOf(options);
  const secure = tls === undefined ? undefined : http2.createSecureServer(
    {
      ...secureOptions(tls),
      requestCert: true,
      rejectUnauthorized: options.certificateOptional !== true,
      handshakeTimeout: HANDSHAKE_MS_MAX,
    },
    handler,
  );
  const server = secure ?? http2.createServer(handler);
  const sessions = new Set<WatchedSession>();
  const judge = secure === undefined
    ? () => {}
    : (watch: WatchedSession) => endRefused(watch, options);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("session", (session: http2.ServerHttp2Session) => {
    const watch = new WatchedSession(session, {
      judge,
      socket: () => socketOf(session, sockets),
      ended: () => sessions.delete(watch),
    });
    sessions.add(watch);
    judge(watch);
  });
  // A refused handshake is the peer's business; without a handler it would end the process.
  server.on("tlsClientError", (error: Error) => log.warning("TLS handshake refused", { error }));
  server.on("sessionError", (error: Error) => log.debug("session ended", { error }));
  await bind(server, listen);
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : listen.port;
  return {
    address: { host: listen.host, port },
    reload(next) {
      secure?.setSecureContext(secureOptions(next));
    },
    peers: () =>
      secure === undefined
        ? []
        : [...sessions].map(({ session }) => session).filter((session) => !session.destroyed)
          .map(({ socket }) => shownCertificate(tlsOf(socket).getPeerCertificate()))
          .filter((shown) => shown !== undefined),
    recheck() {
      for (const watch of sessions) judge(watch);
    },
    close: (graceMs) => closeServer(server, { sessions, sockets }, graceMs),
  };
}

/** Answers calls, once it is known who asks. */
function handlerOf(options: RpcServerOptions): HttpHandler {
  return guarded(connectNodeAdapter({
    routes: options.routes,
    ...(options.fallback === undefined ? {} : { fallback: fallbackOf(options, options.fallback) }),
    contextValues: (request) => createContextValues().set(PEER, peerOf(request)),
    interceptors: [
      answerErrors,
      demandCertificate(options),
      demandRole(options.roles),
      ...options.interceptors ?? [],
    ],
    acceptCompression: [],
    readMaxBytes: READ_BYTES_MAX,
  }));
}

// TLS 1.3 is repeated wherever a context is made: one made without it would allow 1.2 again.
function secureOptions(tls: TlsMaterial) {
  return { cert: tls.cert, key: tls.key, ca: tls.ca, minVersion: "TLSv1.3" as const };
}

function bind(server: http2.Http2Server | http2.Http2SecureServer, listen: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: Error) =>
      reject(
        new HeddleError(
          "system",
          `Cannot listen on ${formatAddress(listen)}: ${errorText(error)}`,
          {
            cause: error,
          },
        ),
      ));
    server.listen({ host: listen.host, port: listen.port }, () => {
      server.on("error", (error: Error) => log.error("listener failed", { error }));
      resolve();
    });
  });
}

// Deno knows no revocation, and a certificate is not looked at again once the handshake is over.
function endRefused(watch: WatchedSession, options: RpcServerOptions): void {
  const { session } = watch;
  if (session.destroyed || session.closed || watch.refused) return;
  const socket = tlsOf(session.socket);
  const shown = shownCertificate(socket.getPeerCertificate());
  const why = refusalOf(shown, socket.authorized, options);
  if (why === undefined) return;
  const who = shown?.identity === undefined ? "nobody of ours" : formatIdentity(shown.identity);
  log.warning("Connection ended: its certificate is not good", { who, serial: shown?.serial, why });
  watch.refuse();
}

function refusalOf(
  shown: ShownCertificate | undefined,
  authorized: boolean,
  { refuses, certificateOptional }: RpcServerOptions,
): string | undefined {
  if (shown === undefined) return certificateOptional === true ? undefined : "there is none";
  if (!authorized) return "it is not of this cluster's authority";
  if (Date.now() >= shown.notAfter) return "it has expired";
  return refuses?.(shown);
}

async function closeServer(
  server: http2.Http2Server | http2.Http2SecureServer,
  open: { sessions: ReadonlySet<WatchedSession>; sockets: ReadonlySet<Socket> },
  graceMs: number,
): Promise<void> {
  // Past node:http2's own, which says GOAWAY on every connection.
  const closed = new Promise<void>((resolve) =>
    net.Server.prototype.close.call(server, () => resolve())
  );
  for (const session of [...open.sessions]) session.drain();
  const timer = setTimeout(() => {
    for (const session of [...open.sessions]) session.end();
    // A session that is destroyed may leave its connection open, and a peer that never said
    // anything has none: either would keep the listener from ever having closed.
    for (const socket of open.sockets) socket.destroy();
  }, graceMs);
  await closed;
  clearTimeout(timer);
  for (const watch of [...open.sessions]) watch.stop();
}

/** The connection below a session, which node:http2 itself does not let out of its hands. */
function socketOf(
  session: http2.ServerHttp2Session,
  sockets: ReadonlySet<Socket>,
): Socket | undefined {
  // One that is destroyed has none, whatever its type says.
  const { socket }: { readonly socket: Socket | undefined } = session;
  if (socket === undefined) return undefined;
  const { remoteAddress, remotePort } = socket;
  return [...sockets].findLast((socket) =>
    socket.remotePort === remotePort && socket.remoteAddress === remoteAddress
  );
}

/** Who shows a certificate that is not good is a peer without one. */
function fallbackOf(
  options: RpcServerOptions,
  fallback: NonNullable<RpcServerOptions["fallback"]>,
): HttpHandler {
  return (request, response) => {
    const peer = peerOf(request);
    const refused = peer.certificate !== undefined &&
      refusalOf(peer.certificate, true, options) !== undefined;
    const shown = refused ? { identity: undefined, certificate: undefined } : {};
    fallback(request, response, { ...peer, ...shown });
  };
}

/** One request that a handler fails on must not end the process, and with it everyone's streams. */
function guarded(handler: HttpHandler): HttpHandler {
  return (request, response) => {
    try {
      handler(request, response);
    } catch (error) {
      log.error("A request hit a bug", { error, path: request.url });
      response.destroy();
    }
  };
}

function peerOf(request: IncomingMessage | http2.Http2ServerRequest): Peer {
  const plain = { identity: undefined, certificate: undefined, address: "" };
  const session = "stream" in request ? request.stream.session : undefined;
  if (session === undefined) return plain;
  const socket = tlsOf(session.socket);
  const address = socket.remoteAddress ?? "";
  if (socket.authorized !== true) return { ...plain, address };
  const certificate = shownCertificate(socket.getPeerCertificate());
  return { identity: certificate?.identity, certificate, address };
}

/** The TLS members are undefined on a plaintext listener. */
function tlsOf(
  socket: Socket,
): Pick<TLSSocket, "remoteAddress" | "authorized" | "getPeerCertificate"> {
  // What node:http2 gives is a proxy: `in` sees nothing through it, so the type is asserted.
  return socket as TLSSocket;
}

/** Turns what a handler throws into what the caller may know of it. */
export const answerErrors: Interceptor = (next) => async (request) => {
  const { name } = request.method;
  try {
    const response = await next(request);
    if (!response.stream) return response;
    return { ...response, message: answerStreamErrors(name, response.message) };
  } catch (error) {
    throw refusal(name, error);
  }
};

// A handler that streams fails while it is read, long after it was called.
async function* answerStreamErrors<T>(
  method: string,
  messages: AsyncIterable<T>,
): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw refusal(method, error);
  }
}

function refusal(method: string, error: unknown): ConnectError {
  log.debug("call refused", { method, error });
  return toRpc(error);
}

// A connection that is about to be ended is not yet.
function demandCertificate(options: RpcServerOptions): Interceptor {
  return (next) => (request) => {
    const { certificate } = request.contextValues.get(PEER);
    const why = certificate && refusalOf(certificate, true, options);
    if (why === undefined) return next(request);
    throw toRpc(new HeddleError("unauthenticated", `the certificate was refused: ${why}`));
  };
}

function demandRole(roles: readonly Role[] | undefined): Interceptor {
  return (next) => (request) => {
    const { identity } = request.contextValues.get(PEER);
    if (roles !== undefined && (identity === undefined || !roles.includes(identity.role))) {
      const who = identity === undefined ? "no Heddle identity" : `role ${identity.role}`;
      throw toRpc(
        new HeddleError(
          "permission_denied",
          `Cannot call ${request.method.name}: the certificate says ${who}, want ${
            roles.join(" or ")
          }`,
        ),
      );
    }
    return next(request);
  };
}
