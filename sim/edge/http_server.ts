/** The engine's HTTP surface: vLLM's paths, guarded where vLLM guards them. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { RequestError } from "../core/openai/request_error.ts";
import { log, logRaw } from "./log.ts";
import { sendJson } from "./reply.ts";

export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

export interface Route {
  readonly method: "GET" | "POST";
  /** Whole, or with a trailing "/*" that stands for the rest. */
  readonly path: string;
  readonly handle: Handler;
}

export interface HttpServerOptions {
  readonly routes: readonly Route[];
  readonly apiKeys: readonly string[];
  readonly accessLog: boolean;
  /** Whether answers carry the client's X-Request-Id. */
  readonly requestIdHeaders: boolean;
}

/** uvicorn closes idle connections after this; clients that pool must live with it. */
const KEEP_ALIVE_MS = 5_000;
const HEADERS_MS = 60_000;
const HEADER_BYTES_MAX = 64 << 10;
const GUARDED = ["/v1", "/v2", "/inference"];
/** Probes come every few seconds; when all is well they would bury what a reader looks for. */
const PROBES = ["/health", "/ping", "/metrics", "/v1/models", "/load"];

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#server = createServer({
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      // Uploads and answers may take as long as they take.
      requestTimeout: 0,
      maxHeaderSize: HEADER_BYTES_MAX,
    }, (request, response) => {
      this.#handle(request, response).catch((error) => {
        log("ERROR", "http", `unexpected: ${error instanceof Error ? error.stack : error}`);
        response.destroy();
      });
    });
  }

  /** Opens the port; the port that was opened. Rejects with the system's error. */
  listen(host: string, port: number): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#server.once("error", reject);
    this.#server.listen({ host, port }, () => {
      this.#server.off("error", reject);
      const address = this.#server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
    return promise;
  }

  /** Refuses new connections; resolves when the open ones have ended. */
  stopListening(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    return promise;
  }

  /** Cuts every connection. */
  closeConnections(): void {
    this.#server.closeAllConnections();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    this.#prepare(request, response, path);
    if (!this.#authorized(request, path)) {
      sendJson(response, 401, { error: "Unauthorized" });
      return;
    }
    try {
      await this.#route(request.method ?? "GET", path)(request, response);
    } catch (error) {
      // The client left while it was still sending; there is nobody to answer.
      if (request.destroyed && !request.complete) return;
      const refusal = error instanceof RequestError
        ? error
        : new RequestError(500, `Internal server error: ${error}`);
      if (!response.headersSent) sendJson(response, refusal.status, refusal.body);
      else response.destroy();
    }
  }

  #prepare(request: IncomingMessage, response: ServerResponse, path: string): void {
    response.setHeader("server", "heddle-sim");
    const id = request.headers["x-request-id"];
    if (this.#options.requestIdHeaders && typeof id === "string") {
      response.setHeader("x-request-id", id);
    }
    if (!this.#options.accessLog) return;
    const from = `${request.socket.remoteAddress}:${request.socket.remotePort}`;
    response.once("close", () => {
      if (PROBES.includes(path) && response.statusCode === 200) return;
      const outcome = response.writableFinished ? String(response.statusCode) : "client left";
      logRaw(`INFO:     ${from} - "${request.method} ${path} HTTP/1.1" ${outcome}`);
    });
  }

  #authorized(request: IncomingMessage, path: string): boolean {
    const { apiKeys } = this.#options;
    if (apiKeys.length === 0 || request.method === "OPTIONS") return true;
    if (!GUARDED.some((prefix) => path.startsWith(prefix))) return true;
    const [scheme, key] = (request.headers.authorization ?? "").split(" ", 2);
    return scheme?.toLowerCase() === "bearer" && key !== undefined && apiKeys.includes(key);
  }

  #route(method: string, path: string): Handler {
    const found = this.#options.routes.filter((route) => matches(route.path, path));
    if (found.length === 0) throw new RequestError(404, "Not Found");
    const route = found.find((one) => one.method === (method === "HEAD" ? "GET" : method));
    if (route === undefined) throw new RequestError(405, "Method Not Allowed");
    return route.handle;
  }
}

function matches(pattern: string, path: string): boolean {
  return pattern.endsWith("/*")
    ? path.startsWith(pattern.slice(0, -1)) && path.length > pattern.length - 1
    : path === pattern;
}
