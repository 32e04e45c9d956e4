/** The OpenAI API's listener: node:http, because it has timeouts for every way of being slow. */
import http from "node:http";
import https from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Address, formatAddress } from "@heddle/common/address";
import { errorText, HeddleError } from "@heddle/proto/error";
import { drainAfter } from "./drain.ts";
import type { ServerTls } from "./server_tls.ts";

/** A whole request head must be there within this time of its first byte. */
const HEADERS_TIMEOUT_MS = 15_000;
/** A body of tens of megabytes over a slow line takes minutes; for ever is an attack. */
const REQUEST_TIMEOUT_MS = 300_000;
/** Longer than the 60 s after which load balancers drop idle connections, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
const CHECK_INTERVAL_MS = 5_000;
/**
 * Once the router stops, a connection that had a request a moment ago is left open for so long: its
 * client may be sending the next one already, and gets it answered, with the word to close.
 */
const HOT_MS = 2_000;
/** Parts of that time after which connections are looked at. */
const HOT_CHECKS = 20;
/** A handshake is two round trips; who takes longer holds a socket for nothing. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** The oldest version that clients of today still meet and that is not broken. */
const TLS_VERSION_MIN = "TLSv1.2";
/** Room for long keys and a proxy's headers; engines have died of larger ones. */
const HEADER_BYTES_MAX = 32_768;

const REFUSALS: ReadonlyMap<string, string> = new Map([
  ["HPE_HEADER_OVERFLOW", "431 Request Header Fields Too Large"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "408 Request Timeout"],
]);

/** Where to listen: an address, or a socket that our parent opened (systemd's socket activation). */
export type ListenOn =
  | { readonly kind: "address"; readonly address: Address }
  | { readonly kind: "inherited"; readonly fd: number };

export interface ListenerOptions {
  readonly on: ListenOn;
  /** Undefined: plain HTTP. */
  readonly tls?: ServerTls | undefined;
}

export interface Listener {
  /** As bound. */
  readonly address: Address;
  /** New connections are shown the new certificate; those there are go on. Plain HTTP has none. */
  reload(tls: ServerTls): void;
  /**
   * Accepts no more, answers what still comes on connections that had a request within `hotMs`, and
   * resolves once all have ended, at the latest after `graceMs`.
   */
  close(graceMs: number, hotMs?: number): Promise<void>;
}

const HTTP_OPTIONS = {
  headersTimeout: HEADERS_TIMEOUT_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  connectionsCheckingInterval: CHECK_INTERVAL_MS,
  maxHeaderSize: HEADER_BYTES_MAX,
  // Refused here instead, in the API's own words.
  requireHostHeader: false,
};

/**
 * Starts listening; port 0 takes a free one. Throws `system` when that is not possible.
 */
export async function startListener(
  { on: listen, tls }: ListenerOptions,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Listener> {
  const connections = new Connections();
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    connections.begin(request, response);
    drainAfter(request, response);
    const why = hostFault(request) ?? framingFault(request);
    if (why === undefined) handle(request, response);
    else refuse(request, response, { status: 400, why });
  };
  const secure = tls === undefined ? undefined : secureServer(tls, onRequest);
  const server = secure ?? http.createServer(HTTP_OPTIONS, onRequest);
  if (secure === undefined) server.on("connection", (socket) => connections.add(socket));
  else {
    secure.on("connection", (socket) => connections.addRaw(socket));
    secure.on("secureConnection", (socket) => connections.add(socket));
    // A handshake that fails says nothing that anyone could answer.
    secure.on("tlsClientError", (_, socket) => socket.destroy());
  }
  server.on("checkExpectation", (request, response) => {
    connections.begin(request, response);
    const why = "the only expectation that is met is 100-continue";
    refuse(request, response, { status: 417, why });
  });
  server.on("clientError", (error: Error & { code?: string }, socket) => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const status = REFUSALS.get(error.code ?? "") ?? "400 Bad Request";
    const body = refusalBody(`The request is not valid HTTP: ${status}`);
    socket.end(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
        `connection: close\r\n\r\n${body}`,
    );
  });
  await bind(server, listen);
  const bound = server.address();
  if (typeof bound !== "object" || bound === null) throw new Error("The listener has no address");
  return {
    address: { host: bound.address, port: bound.port },
    reload: (next) => secure?.setSecureContext(contextOf(next)),
    close: (graceMs, hotMs = HOT_MS) => close(server, connections, { graceMs, hotMs }),
  };
}

/** What is wrong with a request's Host; proxies and servers that disagree about it can be played off. */
function hostFault({ httpVersion, rawHeaders }: IncomingMessage): string | undefined {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  if (hosts > 1) return "it has more than one Host header";
  return hosts === 0 && httpVersion === "1.1" ? "it has no Host header" : undefined;
}

/**
 * What is wrong with how a request's body is framed. The runtime takes whatever ends in "chunked"
 * for chunks of a plain body, also what says it is packed, and chunks of a version that has none.
 */
function framingFault({ httpVersion, headers }: IncomingMessage): string | undefined {
  const coding = headers["transfer-encoding"];
  if (coding === undefined) return undefined;
  if (coding.trim().toLowerCase() !== "chunked") {
    return "its transfer-encoding is not chunked alone";
  }
  return httpVersion === "1.1" ? undefined : "only HTTP/1.1 has a transfer-encoding";
}

function refusalBody(message: string): string {
  return JSON.stringify({
    error: { message, type: "invalid_request_error", param: null, code: "bad_http" },
  });
}

interface Refusal {
  readonly status: number;
  readonly why: string;
}

/** The body is not read, so the connection cannot be used again. */
function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const body = refusalBody(`The request is not valid HTTP: ${refusal.why}`);
  response.writeHead(refusal.status, {
    "content-type": "application/json",
    "content-length": body.length,
    connection: "close",
  });
  response.end(body);
  request.resume();
}

function secureServer(
  tls: ServerTls,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): https.Server {
  const options = { ...HTTP_OPTIONS, ...contextOf(tls), handshakeTimeout: HANDSHAKE_TIMEOUT_MS };
  return https.createServer(options, onRequest);
}

/** `minVersion` stands in every context: one without it would let older versions in again. */
function contextOf({ cert, key }: ServerTls) {
  return { cert, key, minVersion: TLS_VERSION_MIN } as const;
}

function bind(server: http.Server, listen: ListenOn): Promise<void> {
  const inherited = listen.kind === "inherited";
  const name = inherited ? `inherited socket ${listen.fd}` : formatAddress(listen.address);
  return new Promise((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new HeddleError("system", `Cannot listen on ${name}: ${errorText(cause)}`, { cause }),
      ));
    if (inherited) server.listen({ fd: listen.fd }, resolve);
    else server.listen({ host: listen.address.host, port: listen.address.port }, resolve);
  });
}

/**
 * Which connections wait for a request. node:http has its own idea of it, which fits neither way
 * when a server stops: it ends at once those whose client may be sending the next request already,
 * and waits for ever for those that never had one.
 */
class Connections {
  /** What is under a TLS connection, or about to become one. */
  readonly #raw = new Set<Duplex>();
  readonly #states = new Map<Socket, { requests: number; idleSince: number }>();
  /** Those that are not over. */
  readonly #answers = new Set<ServerResponse>();
  #closing = false;

  add(socket: Socket): void {
    this.#states.set(socket, { requests: 0, idleSince: performance.now() });
    socket.on("close", () => this.#states.delete(socket));
  }

  addRaw(socket: Duplex): void {
    this.#raw.add(socket);
    socket.on("close", () => this.#raw.delete(socket));
  }

  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const state = this.#states.get(socket);
    if (state === undefined) return;
    state.requests++;
    if (this.#closing) response.setHeader("connection", "close");
    this.#answers.add(response);
    response.on("close", () => {
      this.#answers.delete(response);
      state.requests--;
      state.idleSince = performance.now();
    });
  }

  /** From now on, every answer ends its connection, whose head can still say so. */
  close(): void {
    this.#closing = true;
    for (const answer of this.#answers) {
      if (!answer.headersSent) answer.setHeader("connection", "close");
    }
  }

  /** Ends connections that have had no request for `ms`. */
  endIdle(ms: number): void {
    const since = performance.now() - ms;
    for (const [socket, { requests, idleSince }] of this.#states) {
      if (requests === 0 && idleSince <= since) socket.destroySoon();
    }
  }

  destroy(): void {
    for (const socket of [...this.#states.keys(), ...this.#raw]) socket.destroy();
  }
}

function close(
  server: http.Server,
  connections: Connections,
  { graceMs, hotMs }: { readonly graceMs: number; readonly hotMs: number },
): Promise<void> {
  return new Promise((resolve) => {
    const hot = setInterval(() => connections.endIdle(hotMs), hotMs / HOT_CHECKS);
    const last = setTimeout(() => connections.destroy(), graceMs);
    // What close() would call; see above.
    server.closeIdleConnections = () => {};
    // After each answer node:http looks whether its server still listens, and ends the connection
    // when not, also of a client that was told to go on with it. Who is told to close is ours to say.
    Object.defineProperty(server, "listening", { value: true });
    server.close(() => {
      clearInterval(hot);
      clearTimeout(last);
      resolve();
    });
    connections.close();
    connections.endIdle(hotMs);
  });
}
