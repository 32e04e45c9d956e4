/** The OpenAI API's listener: node:http, because it has timeouts for every way of being slow. */
import http from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Address, formatAddress } from "@heddle/common/address";
import { errorText, HeddleError } from "@heddle/proto/error";

/** A whole request head must be there within this time of its first byte. */
const HEADERS_TIMEOUT_MS = 15_000;
/** A body of tens of megabytes over a slow line takes minutes; for ever is an attack. */
const REQUEST_TIMEOUT_MS = 300_000;
/** Longer than the 60 s after which load balancers drop idle connections, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
const CHECK_INTERVAL_MS = 5_000;
/** Room for long keys and a proxy's headers; engines have died of larger ones. */
const HEADER_BYTES_MAX = 32_768;

const REFUSALS: ReadonlyMap<string, string> = new Map([
  ["HPE_HEADER_OVERFLOW", "431 Request Header Fields Too Large"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "408 Request Timeout"],
]);

export interface Listener {
  readonly address: Address;
  /** Accepts no more; resolves once every request has ended, or at the latest after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Listens on `listen`; port 0 takes a free one. Throws `system` when the address is taken. */
export async function startListener(
  listen: Address,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Listener> {
  const connections = new Connections();
  const server = http.createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
  }, (request, response) => {
    connections.begin(request, response);
    handle(request, response);
  });
  server.on("connection", (socket) => connections.add(socket));
  server.on("clientError", (error: Error & { code?: string }, socket) => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const status = REFUSALS.get(error.code ?? "") ?? "400 Bad Request";
    const body = JSON.stringify({
      error: {
        message: `The request is not valid HTTP: ${status}`,
        type: "invalid_request_error",
        param: null,
        code: "bad_http",
      },
    });
    socket.end(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
        `connection: close\r\n\r\n${body}`,
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(
        new HeddleError(
          "system",
          `Cannot listen on ${formatAddress(listen)}: ${errorText(error)}`,
          { cause: error },
        ),
      ));
    server.listen({ host: listen.host, port: listen.port }, resolve);
  });
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : listen.port;
  return {
    address: { host: listen.host, port },
    close: (graceMs) => close(server, connections, graceMs),
  };
}

/**
 * Which connections wait for a request. node:http under Deno does not know them itself: its
 * closeIdleConnections() leaves those of clients that keep their connection, for as long as they do.
 */
class Connections {
  readonly #requests = new Map<Socket, number>();
  #closing = false;

  add(socket: Socket): void {
    this.#requests.set(socket, 0);
    socket.on("close", () => this.#requests.delete(socket));
  }

  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#count(socket, 1);
    if (this.#closing) response.setHeader("connection", "close");
    response.on("close", () => {
      this.#count(socket, -1);
      if (this.#closing) this.#endIdle();
    });
  }

  /** Ends who waits now, and everyone else once their requests have ended. */
  close(): void {
    this.#closing = true;
    this.#endIdle();
  }

  destroy(): void {
    for (const socket of this.#requests.keys()) socket.destroy();
  }

  #count(socket: Socket, by: number): void {
    const count = this.#requests.get(socket);
    if (count !== undefined) this.#requests.set(socket, count + by);
  }

  #endIdle(): void {
    for (const [socket, requests] of this.#requests) if (requests === 0) socket.destroySoon();
  }
}

function close(server: http.Server, connections: Connections, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => connections.destroy(), graceMs);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    connections.close();
  });
}
