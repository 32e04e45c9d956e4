/**
 * A load generator over raw TCP: as many connections as asked, each with one request at a time. It
 * does little with what comes back, so that it measures others rather than itself.
 */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

export interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Load {
  readonly target: Target;
  readonly connections: number;
  readonly seconds: number;
  readonly body: string;
}

/** Milliseconds each. */
export interface Samples {
  /** From the request to the end of the answer. */
  readonly whole: number[];
  /** From the request to the first byte of the body. */
  readonly first: number[];
  /** From an event's sending to its arrival; of streams only. */
  readonly chunk: number[];
  failures: number;
  /** How long the load went on. */
  elapsedMs: number;
}

/** After this an answer is not waited for: a gateway hangs. */
const ANSWER_MS_MAX = 60_000;

function now(): number {
  return performance.timeOrigin + performance.now();
}

export async function run(load: Load): Promise<Samples> {
  const samples: Samples = { whole: [], first: [], chunk: [], failures: 0, elapsedMs: 0 };
  const startedAt = now();
  const until = startedAt + load.seconds * 1_000;
  const bytes = requestBytes(load);
  await Promise.all(
    Array.from(
      { length: load.connections },
      () => loop(load.target.port, { bytes, until, samples }),
    ),
  );
  samples.elapsedMs = now() - startedAt;
  return samples;
}

function requestBytes({ target, body }: Load): Uint8Array {
  const lines = [
    `POST ${target.path} HTTP/1.1`,
    "host: 127.0.0.1",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(target.headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

interface Loop {
  readonly bytes: Uint8Array;
  readonly until: number;
  readonly samples: Samples;
}

async function loop(port: number, { bytes, until, samples }: Loop): Promise<void> {
  let connection: Connection | undefined;
  while (now() < until) {
    connection ??= new Connection(port);
    const answer = await connection.ask(bytes);
    if (answer === undefined) {
      samples.failures++;
      connection.close();
      connection = undefined;
      // A gateway that refuses at once must not turn this into a busy loop.
      await new Promise((resolve) => setTimeout(resolve, 5));
      continue;
    }
    samples.whole.push(answer.wholeMs);
    samples.first.push(answer.firstMs);
    samples.chunk.push(...answer.chunkMs);
    if (!answer.reusable) {
      connection.close();
      connection = undefined;
    }
  }
  connection?.close();
}

interface Answer {
  readonly wholeMs: number;
  readonly firstMs: number;
  readonly chunkMs: readonly number[];
  readonly reusable: boolean;
}

/** An answer on its way. */
interface Running {
  readonly askedAt: number;
  readonly resolve: (answer: Answer | undefined) => void;
  head: string | undefined;
  seen: string;
  bodyBytes: number;
  firstAt: number;
  readonly chunkMs: number[];
}

class Connection {
  readonly #socket: Socket;
  #running: Running | undefined;
  #tail = "";

  constructor(port: number) {
    this.#socket = connect({ host: "127.0.0.1", port });
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (part: Uint8Array) => this.#take(Buffer.from(part).toString("latin1")));
    this.#socket.on("error", () => this.#end(undefined));
    this.#socket.on("close", () => this.#end(undefined));
  }

  ask(bytes: Uint8Array): Promise<Answer | undefined> {
    return new Promise((done) => {
      const timer = setTimeout(() => this.#end(undefined), ANSWER_MS_MAX);
      const resolve = (answer: Answer | undefined): void => {
        clearTimeout(timer);
        done(answer);
      };
      this.#tail = "";
      this.#running = {
        askedAt: now(),
        resolve,
        head: undefined,
        seen: "",
        bodyBytes: 0,
        firstAt: 0,
        chunkMs: [],
      };
      if (this.#socket.destroyed) return this.#end(undefined);
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    const running = this.#running;
    if (running === undefined) return;
    const at = now();
    let body = text;
    if (running.head === undefined) {
      running.seen += text;
      const end = running.seen.indexOf("\r\n\r\n");
      if (end < 0) return;
      running.head = running.seen.slice(0, end).toLowerCase();
      body = running.seen.slice(end + 4);
    }
    if (body === "") return this.#finishIfWhole(running, at);
    if (running.firstAt === 0) running.firstAt = at;
    running.bodyBytes += body.length;
    for (const [, sent] of body.matchAll(/"t":([\d.]+)/g)) running.chunkMs.push(at - Number(sent));
    this.#tail = (this.#tail + body).slice(-16);
    this.#finishIfWhole(running, at);
  }

  #finishIfWhole(running: Running, at: number): void {
    const head = running.head ?? "";
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    const whole = length === undefined
      ? this.#tail.endsWith("\r\n0\r\n\r\n")
      : running.bodyBytes >= Number(length);
    if (!whole) return;
    if (!head.startsWith("http/1.1 200")) return this.#end(undefined);
    this.#end({
      wholeMs: at - running.askedAt,
      firstMs: running.firstAt - running.askedAt,
      chunkMs: running.chunkMs,
      reusable: !/\r\nconnection: close/.test(head),
    });
  }

  #end(answer: Answer | undefined): void {
    const running = this.#running;
    this.#running = undefined;
    running?.resolve(answer);
  }
}
