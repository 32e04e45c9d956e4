/** A scripted engine over raw TCP, for tests: it answers with exact bytes, at exact moments. */
import { Buffer } from "node:buffer";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

export interface FakeCall {
  /** The request's head and body as text. */
  readonly text: string;
  /** Which connection, and which request on it, each counted from 0. */
  readonly connection: number;
  readonly onConnection: number;
  readonly socket: Socket;
  /** Resolves when the connection is closed, by whichever side. */
  readonly closed: Promise<void>;
}

export interface FakeEngine extends AsyncDisposable {
  readonly port: number;
  readonly calls: readonly FakeCall[];
  /** Resolves when that many requests have come. */
  called(count: number): Promise<FakeCall>;
}

/** Starts an engine on a free port; `answer` runs for every whole request. */
export async function startFakeEngine(
  answer: (call: FakeCall) => void,
  options: { host?: string; tls?: TlsOptions } = {},
): Promise<FakeEngine> {
  const calls: FakeCall[] = [];
  const sockets = new Set<Socket>();
  const waiters: { count: number; resolve: (call: FakeCall) => void }[] = [];
  let connections = 0;
  const onSocket = (socket: Socket): void => {
    const connection = connections++;
    sockets.add(socket);
    const closed = new Promise<void>((resolve) =>
      socket.on("close", () => {
        sockets.delete(socket);
        resolve();
      })
    );
    socket.on("error", () => {});
    let onConnection = 0;
    let seen = "";
    socket.on("data", (chunk: Uint8Array) => {
      seen += Buffer.from(chunk).toString("latin1");
      for (let end = requestEnd(seen); end <= seen.length; end = requestEnd(seen)) {
        const call = { text: seen.slice(0, end), connection, onConnection, socket, closed };
        seen = seen.slice(end);
        onConnection++;
        calls.push(call);
        answer(call);
        for (const waiter of waiters) if (calls.length >= waiter.count) waiter.resolve(call);
      }
    });
  };
  const server = options.tls === undefined
    ? createServer(onSocket)
    : createTlsServer(options.tls, onSocket);
  await new Promise<void>((resolve) => server.listen(0, options.host ?? "127.0.0.1", resolve));
  return {
    port: portOf(server),
    calls,
    called(count) {
      const call = calls[count - 1];
      if (call !== undefined) return Promise.resolve(call);
      return new Promise((resolve) => waiters.push({ count, resolve }));
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Where the first request in `text` ends, or Infinity while it is not whole. */
function requestEnd(text: string): number {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return Infinity;
  const length = /\r\ncontent-length: ([0-9]+)\r\n/i.exec(text.slice(0, head + 2))?.[1] ?? "0";
  const end = head + 4 + Number(length);
  return text.length >= end ? end : Infinity;
}
