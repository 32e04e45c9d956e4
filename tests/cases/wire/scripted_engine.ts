/** An engine that answers its n-th call by the n-th script, over raw TCP, and notes what it saw. */
import { Buffer } from "node:buffer";
import { createServer, type Socket } from "node:net";
import type { Script } from "./engine_script.ts";

/** One call as an engine saw it. Times are of the monotonic clock. */
export interface EngineCall {
  readonly replica: string;
  readonly method: string;
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  readonly arrivedAt: number;
  /** The other side went before the answer was out. */
  abortedAt: number | undefined;
}

export interface Engines extends AsyncDisposable {
  /** Name and port of each replica. */
  readonly replicas: readonly { readonly name: string; readonly port: number }[];
  readonly calls: readonly EngineCall[];
  /** Resolves once every call is answered or given up. */
  settled(): Promise<void>;
}

/**
 * Starts `names.length` replicas that share the scripts: the first call to any of them gets the
 * first one, and calls beyond the last get the last again.
 */
export async function startEngines(
  names: readonly string[],
  scriptFor: (call: EngineCall, index: number) => Script,
): Promise<Engines> {
  const calls: EngineCall[] = [];
  const running = new Set<Promise<void>>();
  const sockets = new Set<Socket>();
  const stop = new AbortController();
  const onRequest = (socket: Socket, call: EngineCall): void => {
    const script = scriptFor(call, calls.push(call) - 1);
    const done = play(socket, script, call, stop.signal).finally(() => running.delete(done));
    running.add(done);
  };
  const servers = names.map((replica) =>
    createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
      readRequests(socket, replica, onRequest);
    })
  );
  const replicas = await Promise.all(servers.map(async (server, index) => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return { name: names[index] ?? "", port: address.port };
  }));
  return {
    replicas,
    calls,
    async settled() {
      while (running.size > 0) await Promise.race(running);
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      for (const socket of sockets) socket.destroy();
      await Promise.allSettled(running);
      await Promise.all(
        servers.map((server) => new Promise((resolve) => server.close(resolve))),
      );
    },
  };
}

async function play(
  socket: Socket,
  script: Script,
  call: EngineCall,
  stop: AbortSignal,
): Promise<void> {
  const left = new AbortController();
  const onLeft = (): void => {
    call.abortedAt ??= performance.now();
    left.abort();
  };
  socket.on("end", onLeft).on("close", onLeft);
  const gone = AbortSignal.any([left.signal, stop]);
  try {
    await pause(script.firstByteDelayMs, gone);
    if (gone.aborted) return;
    socket.setNoDelay(true);
    if (!script.mute) await speak(socket, script, gone);
    if (script.end === "hang" && !gone.aborted) {
      await new Promise((resolve) => gone.addEventListener("abort", resolve));
    }
  } finally {
    socket.off("end", onLeft).off("close", onLeft);
  }
  if (script.end === "reset") socket.resetAndDestroy();
  else if (script.end === "close") socket.end();
}

/** Chunked, so that an end that is not clean can be told from one that is. */
async function speak(socket: Socket, script: Script, gone: AbortSignal): Promise<void> {
  const headers = { ...script.headers, "transfer-encoding": "chunked", connection: "close" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  await write(socket, `HTTP/1.1 ${script.status} Scripted\r\n${lines.join("")}\r\n`, gone);
  for (const [index, piece] of script.pieces.entries()) {
    if (index > 0) await pause(script.gapMs, gone);
    if (gone.aborted) return;
    const head = Buffer.from(`${piece.length.toString(16)}\r\n`);
    await write(socket, Buffer.concat([head, piece, Buffer.from("\r\n")]), gone);
  }
  // What came with the last write must be on its way before a reset throws it away.
  if (script.end === "reset") await pause(20, gone);
  if (script.end === "close") await write(socket, "0\r\n\r\n", gone);
}

function write(socket: Socket, data: string | Uint8Array, gone: AbortSignal): Promise<void> {
  if (gone.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    gone.addEventListener("abort", () => resolve(), { once: true });
    socket.write(data, () => resolve());
  });
}

/** Waits `ms`, and for 0 until the event loop has come round, so that pieces arrive apart. */
function pause(ms: number, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    gone.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

function readRequests(
  socket: Socket,
  replica: string,
  onRequest: (socket: Socket, call: EngineCall) => void,
): void {
  let seen = Buffer.alloc(0);
  socket.on("data", (chunk: Uint8Array) => {
    seen = Buffer.concat([seen, chunk]);
    for (let parsed = parseRequest(seen); parsed !== undefined; parsed = parseRequest(seen)) {
      seen = seen.subarray(parsed.length);
      onRequest(socket, {
        ...parsed.request,
        replica,
        arrivedAt: performance.now(),
        abortedAt: undefined,
      });
    }
  });
}

type Parsed = {
  readonly length: number;
  readonly request: Pick<EngineCall, "method" | "path" | "headers" | "body">;
};

function parseRequest(bytes: Buffer): Parsed | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers = new Map(lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  }));
  const body = headers.get("transfer-encoding") === "chunked"
    ? unchunked(bytes, end + 4)
    : plain(bytes, end + 4, Number(headers.get("content-length") ?? "0"));
  if (body === undefined) return undefined;
  return { length: body.end, request: { method, path, headers, body: body.bytes } };
}

type Body = { readonly bytes: Uint8Array; readonly end: number };

function plain(bytes: Buffer, from: number, length: number): Body | undefined {
  const end = from + length;
  return bytes.length < end ? undefined : { bytes: bytes.subarray(from, end), end };
}

/** The body of a chunked message that begins at `from`; undefined while it is not whole. */
export function unchunked(bytes: Buffer, from: number): Body | undefined {
  const parts: Uint8Array[] = [];
  for (let at = from;;) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    if (!Number.isFinite(size)) return undefined;
    const data = line + 2;
    if (bytes.length < data + size + 2) return undefined;
    if (size === 0) return { bytes: Buffer.concat(parts), end: data + 2 };
    parts.push(bytes.subarray(data, data + size));
    at = data + size + 2;
  }
}
