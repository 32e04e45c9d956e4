/**
 * How the processes of one engine find each other, as vLLM's TCP store does it.
 *
 * Rank 0 listens on the master port; every other rank connects, retrying until the time is up, and says who it is.
 * When all have come, rank 0 tells them so. The connections then stay open for as long as the engine lives: a
 * connection that ends is a rank that died, and no rank outlives another.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

export interface RendezvousOptions {
  readonly rank: number;
  readonly rankCount: number;
  readonly address: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly fabric: string;
}

/** A meeting that took place. */
export interface Rendezvous extends Disposable {
  /** Whether all ranks are on one fabric; if not, their first collective never returns. */
  readonly oneFabric: boolean;
  /** Resolves, with a word about why, when a rank has gone. */
  readonly broken: Promise<string>;
}

/** Thrown when the ranks did not meet in time, or the master port cannot be used. */
export class RendezvousError extends Error {}

const RETRY_MS = 100;
const HELLO_BYTES_MAX = 1_024;

/** Meets the other ranks. @throws RendezvousError */
export function meet(options: RendezvousOptions): Promise<Rendezvous> {
  return options.rank === 0 ? new Meeting(options).meet() : join(options);
}

class Meeting {
  readonly #options: RendezvousOptions;
  readonly #server: Server;
  readonly #joined = new Map<number, { readonly socket: Socket; readonly fabric: string }>();
  readonly #sockets = new Set<Socket>();
  readonly #met = Promise.withResolvers<void>();
  readonly #broken = Promise.withResolvers<string>();

  constructor(options: RendezvousOptions) {
    this.#options = options;
    this.#server = createServer((socket) => this.#greet(socket));
  }

  async meet(): Promise<Rendezvous> {
    const { address, port, rankCount, timeoutMs, fabric } = this.#options;
    const timer = setTimeout(() => {
      const count = this.#joined.size + 1;
      this.#met.reject(
        new RendezvousError(
          `torch.distributed.DistStoreError: Timed out after ${timeoutMs / 1000} seconds waiting ` +
            `for clients. ${count}/${rankCount} clients joined.`,
        ),
      );
    }, timeoutMs);
    this.#server.once("error", (error) => {
      this.#met.reject(
        new RendezvousError(
          `cannot listen on ${address}:${port} for the rendezvous: ${error.message}`,
        ),
      );
    });
    this.#server.listen({ host: address, port });
    try {
      await this.#met.promise;
    } catch (error) {
      this.#close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    const fabrics = new Set([fabric, ...[...this.#joined.values()].map((one) => one.fabric)]);
    const oneFabric = fabrics.size === 1;
    for (const { socket } of this.#joined.values()) {
      socket.write(`${JSON.stringify({ go: true, oneFabric })}\n`);
    }
    return {
      oneFabric,
      broken: this.#broken.promise,
      [Symbol.dispose]: () => this.#close(),
    };
  }

  #greet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
    onFirstLine(socket, (line) => {
      const hello = readHello(line);
      const refused = hello === undefined || hello.rankCount !== this.#options.rankCount ||
        hello.rank < 1 || hello.rank >= this.#options.rankCount || this.#joined.has(hello.rank);
      if (refused) {
        socket.destroy();
        return;
      }
      this.#joined.set(hello.rank, { socket, fabric: hello.fabric });
      socket.once("close", () => this.#lost(hello.rank));
      if (this.#joined.size === this.#options.rankCount - 1) this.#met.resolve();
    });
  }

  #lost(rank: number): void {
    // Before all have come, a rank that went may come again.
    if (this.#joined.size < this.#options.rankCount - 1) this.#joined.delete(rank);
    else this.#broken.resolve(`rank ${rank} is gone`);
  }

  #close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

async function join(options: RendezvousOptions): Promise<Rendezvous> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    const joined = await tryToJoin(options, deadline);
    if (joined !== undefined) return joined;
    if (performance.now() + RETRY_MS >= deadline) {
      throw new RendezvousError(
        `torch.distributed.DistStoreError: Timed out after ${options.timeoutMs / 1000} seconds ` +
          `connecting to ${options.address}:${options.port}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** One attempt; undefined when rank 0 is not there yet, or refused. */
function tryToJoin(options: RendezvousOptions, deadline: number): Promise<Rendezvous | undefined> {
  const { rank, rankCount, fabric, address, port } = options;
  const { promise, resolve } = Promise.withResolvers<Rendezvous | undefined>();
  const broken = Promise.withResolvers<string>();
  const socket = connect({ host: address, port }, () => {
    socket.write(`${JSON.stringify({ rank, rankCount, fabric })}\n`);
  });
  const timer = setTimeout(() => socket.destroy(), Math.max(0, deadline - performance.now()));
  socket.on("error", () => socket.destroy());
  socket.once("close", () => {
    clearTimeout(timer);
    broken.resolve("rank 0 is gone");
    resolve(undefined);
  });
  onFirstLine(socket, (line) => {
    clearTimeout(timer);
    const go: unknown = parse(line);
    const oneFabric = typeof go === "object" && go !== null && "oneFabric" in go &&
      go.oneFabric === true;
    resolve({ oneFabric, broken: broken.promise, [Symbol.dispose]: () => socket.destroy() });
  });
  return promise;
}

/** Calls back once with the first line; a peer that sends too much without one is cut. */
function onFirstLine(socket: Socket, take: (line: string) => void): void {
  let text = "";
  socket.setEncoding("utf8");
  socket.on("data", function read(chunk: string) {
    text += chunk;
    const end = text.indexOf("\n");
    if (end < 0) {
      if (text.length > HELLO_BYTES_MAX) socket.destroy();
      return;
    }
    // What comes after is not read: the connection only has to stay open.
    socket.off("data", read);
    socket.resume();
    take(text.slice(0, end));
  });
}

function readHello(
  line: string,
): { rank: number; rankCount: number; fabric: string } | undefined {
  const hello: unknown = parse(line);
  if (typeof hello !== "object" || hello === null) return undefined;
  if (!("rank" in hello) || typeof hello.rank !== "number") return undefined;
  if (!("rankCount" in hello) || typeof hello.rankCount !== "number") return undefined;
  const fabric = "fabric" in hello && typeof hello.fabric === "string" ? hello.fabric : "";
  return { rank: hello.rank, rankCount: hello.rankCount, fabric };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
