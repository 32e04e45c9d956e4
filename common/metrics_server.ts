/**
 * The small HTTP listener beside a program: `/metrics`, `/health` and `/ready`. Plain on loopback or
 * a management network; and, where that is asked for, a second one for scrapers from elsewhere, which
 * lets in nobody without a monitor's certificate.
 */
import http from "node:http";
import https from "node:https";
import { TLSSocket } from "node:tls";
import type { Registry } from "prom-client";
import { errorText, HeddleError } from "@heddle/proto/error";
import { type Address, formatAddress } from "./address.ts";
import { type Role, type ShownCertificate, shownCertificate } from "./identity.ts";
import { logger } from "./log.ts";
import { readTlsFiles, type TlsFiles } from "./mtls_files.ts";

const log = logger("metrics");

/** Bounds for a listener that only scrapers and probes use. */
const HEADERS_TIMEOUT_MS = 5_000;

/** How often the certificate is read again: it is renewed under way. */
const RELOAD_MS = 3_600_000;

/** How often it is looked whether the certificates of open connections have expired. */
const RECHECK_MS = 10_000;

/** Who may read metrics from elsewhere. */
const READERS: readonly Role[] = ["monitor", "operator"];

export interface MetricsServer {
  readonly address: Address;
  /** Of the listener with mutual TLS; undefined when there is none. */
  readonly secureAddress: Address | undefined;
  /** Reads the certificate again; it happens by itself every hour. Never rejects: the old one stays. */
  reload(): Promise<void>;
  /** Ends connections whose certificate is refused by now. Happens by itself every 10 s. */
  recheck(): void;
  close(): Promise<void>;
}

export interface MetricsServerOptions {
  readonly listen: Address;
  /** A second listener, which demands certificates. */
  readonly secure?: { readonly listen: Address; readonly files: TlsFiles } | undefined;
  /** Why a certificate is not good any more, though it has not expired; undefined when it is. */
  readonly refuses?: (shown: ShownCertificate) => string | undefined;
  readonly registry: Registry;
  /** The reason why the program is not ready, or undefined when it is. */
  readonly notReady: () => string | undefined;
  /** Further paths and what answers them; on the plain listener only. */
  readonly routes?: Readonly<Record<string, http.RequestListener>>;
}

/** Starts the listener, or both. Throws `system` for an address that cannot be bound. */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { listen, secure, routes = {} } = options;
  const limits = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: HEADERS_TIMEOUT_MS };
  const plain = http.createServer(limits, answer(options, routes));
  const address = await bind(plain, listen);
  try {
    const second = secure === undefined ? undefined : await startSecure(options, secure);
    return {
      address,
      secureAddress: second?.address,
      reload: async () => await second?.reload(),
      recheck: () => second?.recheck(),
      async close() {
        await Promise.all([closeServer(plain), second?.close()]);
      },
    };
  } catch (error) {
    await closeServer(plain);
    throw error;
  }
}

type SecureServer = Omit<MetricsServer, "secureAddress">;

async function startSecure(
  options: MetricsServerOptions,
  { listen, files }: NonNullable<MetricsServerOptions["secure"]>,
): Promise<SecureServer> {
  // TLS 1.3 is repeated wherever a context is made: one made without it would allow 1.2 again.
  const context = async () => ({ ...await readTlsFiles(files), minVersion: "TLSv1.3" as const });
  const inside = answer(options, {});
  const server = https.createServer({
    ...await context(),
    requestCert: true,
    rejectUnauthorized: true,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: HEADERS_TIMEOUT_MS,
  }, (request, response) => {
    const why = refusalOf(request.socket, options);
    if (why === undefined) return inside(request, response);
    response.writeHead(403, { "content-type": "text/plain", connection: "close" }).end(`${why}\n`);
  });
  server.on("tlsClientError", (error: Error) => log.debug("TLS handshake refused", { error }));
  const sockets = new Set<TLSSocket>();
  server.on("secureConnection", (socket: TLSSocket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  const recheck = () => sockets.forEach((socket) => endRefused(socket, options));
  const reload = async () => {
    try {
      server.setSecureContext(await context());
    } catch (error) {
      log.warning("Cannot read the certificate", { reason: errorText(error) });
    }
  };
  const address = await bind(server, listen);
  const timers = [setInterval(recheck, RECHECK_MS), setInterval(reload, RELOAD_MS)];
  return {
    address,
    reload,
    recheck,
    close() {
      timers.forEach((timer) => clearInterval(timer));
      return closeServer(server);
    },
  };
}

/** Why this connection gets nothing; undefined when it does. */
function refusalOf(socket: unknown, { refuses }: MetricsServerOptions): string | undefined {
  const readers = `want a certificate of role ${READERS.join(" or ")}`;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return readers;
  const shown = shownCertificate(socket.getPeerCertificate());
  const role = shown?.identity?.role;
  if (shown === undefined || role === undefined || !READERS.includes(role)) return readers;
  const why = Date.now() >= shown.notAfter ? "it has expired" : refuses?.(shown);
  return why === undefined ? undefined : `the certificate was refused: ${why}`;
}

// Of a scraper that keeps its connection, a certificate is looked at again with each request only.
function endRefused(socket: TLSSocket, options: MetricsServerOptions): void {
  const why = refusalOf(socket, options);
  if (why === undefined) return;
  log.warning("Connection of a scraper ended", { from: socket.remoteAddress, why });
  socket.destroy();
}

function answer(
  { registry, notReady }: MetricsServerOptions,
  routes: Readonly<Record<string, http.RequestListener>>,
): http.RequestListener {
  return (request, response) => {
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
        const reason = notReady();
        return send(reason === undefined ? 200 : 503, "text/plain", `${reason ?? "ready"}\n`);
      }
      default: {
        const route = routes[path];
        return route === undefined
          ? send(404, "text/plain", "not found\n")
          : route(request, response);
      }
    }
  };
}

async function bind(server: http.Server | https.Server, listen: Address): Promise<Address> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: Error) => {
      const text = `Cannot listen on ${formatAddress(listen)}: ${errorText(error)}`;
      reject(new HeddleError("system", text, { cause: error }));
    });
    server.listen({ host: listen.host, port: listen.port }, () => resolve());
  });
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : listen.port;
  return { host: listen.host, port };
}

function closeServer(server: http.Server | https.Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
