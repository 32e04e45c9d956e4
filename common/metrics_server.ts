/** The small HTTP listener beside a program: `/metrics`, `/health` and `/ready`. */
import http from "node:http";
import type { Registry } from "prom-client";
import { errorText, HeddleError } from "@heddle/proto/error";
import { type Address, formatAddress } from "./address.ts";

/** Bounds for a listener that only scrapers and probes use. */
const HEADERS_TIMEOUT_MS = 5_000;

export interface MetricsServer {
  readonly address: Address;
  close(): Promise<void>;
}

/** Starts the listener. `notReady` gives the reason, or undefined when the program is ready. */
export async function startMetricsServer(
  options: {
    listen: Address;
    registry: Registry;
    notReady: () => string | undefined;
    /** Further paths and what answers them. */
    routes?: Readonly<Record<string, http.RequestListener>>;
  },
): Promise<MetricsServer> {
  const { listen, registry } = options;
  const server = http.createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: HEADERS_TIMEOUT_MS,
  }, (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const send = (status: number, type: string, body: string) =>
      response.writeHead(status, { "content-type": type }).end(body);
    if (request.method !== "GET") return send(405, "text/plain", "method not allowed\n");
    switch (path) {
      case "/metrics":
        registry.metrics().then(
          (text) => send(200, registry.contentType, text),
          (error: unknown) => send(500, "text/plain", `${errorText(error)}\n`),
        );
        return;
      case "/health":
        return send(200, "text/plain", "ok\n");
      case "/ready": {
        const reason = options.notReady();
        return send(reason === undefined ? 200 : 503, "text/plain", `${reason ?? "ready"}\n`);
      }
      default: {
        const route = options.routes?.[path];
        return route === undefined
          ? send(404, "text/plain", "not found\n")
          : route(request, response);
      }
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(
        new HeddleError(
          "system",
          `Cannot listen on ${formatAddress(listen)}: ${errorText(error)}`,
          {
            cause: error,
          },
        ),
      ));
    server.listen({ host: listen.host, port: listen.port }, resolve);
  });
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : listen.port;
  return {
    address: { host: listen.host, port },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
