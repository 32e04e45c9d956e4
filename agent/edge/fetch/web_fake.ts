/** A web server for tests, plain or with TLS, and a proxy before it. */
import { createServer, request as forward } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { Buffer } from "node:buffer";

export interface FakeWeb extends AsyncDisposable {
  readonly url: string;
  /** Method and URL of every request, as it came. */
  readonly asked: readonly string[];
}

/** Serves `files` by path, with ranges; a folder that has an entry ending in "/" is shown. */
export async function fakeWeb(
  files: Readonly<Record<string, Uint8Array | string>>,
  how: {
    readonly head?: boolean;
    readonly ranges?: boolean;
    readonly length?: boolean;
    /** Address to listen at. @default "127.0.0.1" */
    readonly host?: string;
    /** Headers besides, for the answer to that request, counted from 0. */
    readonly headers?: (count: number) => Readonly<Record<string, string>>;
    /** PEM texts; absent: no TLS. */
    readonly tls?: Certified;
  } = {},
): Promise<FakeWeb> {
  let count = 0;
  return await listening({ host: how.host, tls: how.tls }, (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname);
    const found = files[path];
    if (request.method === "HEAD" && how.head === false) return void response.writeHead(405).end();
    if (found === undefined) return void response.writeHead(404).end();
    const body = typeof found === "string" ? new TextEncoder().encode(found) : found;
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const ranged = first !== undefined && how.ranges !== false;
    const part = ranged ? body.slice(Number(first), Number(last) + 1) : body;
    response.writeHead(ranged ? 206 : 200, {
      etag: `"${body.length}"`,
      "content-type": typeof found === "string" ? "text/html" : "application/octet-stream",
      ...(how.length === false ? {} : { "content-length": part.length }),
      ...(ranged
        ? { "content-range": `bytes ${first}-${Number(first) + part.length - 1}/${body.length}` }
        : {}),
      ...how.headers?.(count++),
    });
    if (request.method === "HEAD") return void response.end();
    response.end(Buffer.from(part));
  });
}

/** A proxy, which is asked with whole URLs for plain HTTP, and for a tunnel with TLS. */
export async function fakeProxy(): Promise<FakeWeb> {
  return await listening({ tunnels: true }, (request, response) => {
    const { method, headers } = request;
    const on = forward(request.url ?? "", {
      ...(method === undefined ? {} : { method }),
      headers,
    }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    on.on("error", () => response.writeHead(502).end());
    request.pipe(on);
  });
}

const LOOPBACK = "127.0.0.1";

interface Certified {
  readonly cert: string;
  readonly key: string;
}

interface Listening {
  readonly host?: string | undefined;
  readonly tls?: Certified | undefined;
  readonly tunnels?: boolean;
}

async function listening(
  { host = LOOPBACK, tls, tunnels = false }: Listening,
  answer: Parameters<typeof createServer>[1] & object,
): Promise<FakeWeb> {
  const asked: string[] = [];
  const listener: typeof answer = (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request, response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  if (tunnels) {
    server.on("connect", ({ url = "" }, socket) => {
      asked.push(`CONNECT ${url}`);
      const { hostname, port } = new URL(`http://${url}`);
      const on = connect(Number(port), hostname, () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.pipe(on).pipe(socket);
      });
      for (const each of [on, socket]) {
        each.on("error", () => [on, socket].map((it) => it.destroy()));
      }
      on.on("close", () => socket.destroy());
      socket.on("close", () => on.destroy());
    });
  }
  await new Promise<void>((resolve) => server.listen(0, host, () => resolve()));
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: `${tls === undefined ? "http" : "https"}://${host}:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
