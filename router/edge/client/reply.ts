/**
 * The answer to one client: either one whole body, or a stream that begins once there is something
 * to say. It knows whether the client is still there, and writes no faster than the client reads.
 */
import type { ServerResponse } from "node:http";

/** How often a waiting client hears that it is not forgotten. Proxies give up at 60 s. */
export const HEARTBEAT_MS = 10_000;

/** A client that takes nothing for so long holds an engine for nothing. */
const STALL_MS_MAX = 300_000;

/** A client that does not even read why its stream broke off is not waited for. */
const BREAK_MS_MAX = 10_000;

/**
 * A comment without the blank line after it: it can neither dispatch an event in clients that count
 * blank lines, nor be taken for data.
 */
const PING = new TextEncoder().encode(": ping\n");

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  // Proxies that buffer would hold back every token.
  "x-accel-buffering": "no",
} as const;

export type ReplyHeaders = Readonly<Record<string, string>>;

export class Reply {
  readonly #response: ServerResponse;
  readonly #heartbeatMs: number;
  readonly #gone = new AbortController();
  #wroteAt = performance.now();
  #state: "unsent" | "streaming" | "ended" = "unsent";

  constructor(response: ServerResponse, heartbeatMs: number) {
    this.#response = response;
    this.#heartbeatMs = heartbeatMs;
    response.on("close", () => {
      if (!response.writableFinished) this.#gone.abort();
    });
    // A write to a socket that just broke; "close" says all that matters.
    response.on("error", () => {});
  }

  /** Aborts when the client leaves before its answer is complete. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** `unsent` until the status line is on its way; then only more of the stream can follow. */
  get state(): "unsent" | "streaming" | "ended" {
    return this.#state;
  }

  /** A header of every form of answer; before the answer begins. */
  setHeader(name: string, value: string): void {
    this.#response.setHeader(name, value);
  }

  /** Says something beside the answer: in a header, or where the answer has begun in a comment. */
  remark(name: string, text: string): void {
    if (this.#state === "unsent") this.setHeader(name, text);
    // Without the blank line after it, as with pings.
    else if (this.#state === "streaming") this.#response.write(`: ${name} ${text}\n`);
  }

  /** Sends a whole answer. */
  whole(status: number, headers: ReplyHeaders, body: string | Uint8Array): void {
    this.#state = "ended";
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    // 204 has no body, and says no length of it.
    const length = status === 204 ? {} : { "content-length": String(bytes.length) };
    this.#response.writeHead(status, { ...headers, ...length });
    this.#response.end(bytes);
  }

  /** Sends the status line of a stream; harmless when it has been sent. */
  startStream(headers: ReplyHeaders): void {
    if (this.#state !== "unsent") return;
    this.#state = "streaming";
    this.#response.writeHead(200, { ...STREAM_HEADERS, ...headers });
    // Deno keeps the head back until there is a body otherwise.
    this.#response.flushHeaders();
  }

  /** Writes to the stream; resolves once the client has room for more, or has gone. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#wroteAt = performance.now();
    if (this.gone.aborted || this.#response.write(bytes)) return;
    await this.#drained();
    this.#wroteAt = performance.now();
  }

  /** Until disposed, a client that has heard nothing for a while gets the status line and a comment. */
  keepAlive(): Disposable {
    const timer = setInterval(() => {
      if (this.gone.aborted || this.#state === "ended" || this.#response.writableNeedDrain) return;
      if (performance.now() - this.#wroteAt < this.#heartbeatMs / 2) return;
      this.startStream({});
      this.#wroteAt = performance.now();
      this.#response.write(PING);
    }, this.#heartbeatMs);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /** Ends the stream well. */
  end(): void {
    this.#state = "ended";
    this.#response.end();
  }

  /** Writes `last` and closes so that no client takes the stream for whole. */
  break(last: string): void {
    this.#state = "ended";
    const response = this.#response;
    const { socket } = response;
    const timer = setTimeout(() => response.destroy(), BREAK_MS_MAX);
    response.on("close", () => clearTimeout(timer));
    response.write(new TextEncoder().encode(last), () => socket?.end());
  }

  /** Closes without a word. */
  abandon(): void {
    this.#state = "ended";
    this.#response.destroy();
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#response.off("drain", done);
        this.gone.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(() => this.#response.destroy(), STALL_MS_MAX);
      this.#response.on("drain", done);
      this.gone.addEventListener("abort", done);
    });
  }
}
