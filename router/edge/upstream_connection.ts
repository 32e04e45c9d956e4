/** One connection to an engine: it carries one request at a time, or none. */
import type { Socket } from "node:net";
import { spawnTask } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import { plainBytes } from "./body/plain_bytes.ts";
import { AnswerBody } from "./upstream_body.ts";
import { type Deadline, deadline } from "./upstream_deadline.ts";
import { UpstreamError, type UpstreamFailure } from "./upstream_error.ts";
import type { ResponseHead } from "./upstream_head.ts";
import { AnswerParser } from "./upstream_parser.ts";
import type { UpstreamBody, UpstreamBodySource } from "./upstream_request.ts";

/** Bodies up to this are joined to the head: one write, one packet, for a copy that costs less. */
const JOIN_BYTES_MAX = 16_384;

export interface Exchange {
  readonly head: Uint8Array;
  readonly body: UpstreamBody;
  readonly method: string;
  readonly headBytesMax: number;
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly head: ResponseHead;
  readonly body: AnswerBody;
}

/** What the owner of the connection learns. Exactly one of the two, once, per exchange. */
export interface ConnectionOwner {
  /** The answer is over and the connection may be kept for `keepMs`. */
  free(connection: UpstreamConnection, keepMs: number): void;
  /** The connection is gone, in the middle of an exchange or between two. */
  gone(connection: UpstreamConnection): void;
}

/** State of the exchange under way. */
interface Running {
  readonly exchange: Exchange;
  readonly parser: AnswerParser;
  readonly body: AnswerBody;
  readonly answer: PromiseWithResolvers<Answer>;
  readonly onAbort: () => void;
  readonly startedAt: number;
  head: ResponseHead | undefined;
  /** A byte of the body. */
  streaming: boolean;
  written: boolean;
  lastByteAt: number;
}

export class UpstreamConnection {
  readonly #socket: Socket;
  readonly #where: string;
  readonly #owner: ConnectionOwner;
  #running: Running | undefined;
  #timer: Deadline | undefined;
  /** When it strikes at the earliest. */
  #timerDueAt = Infinity;
  #answered = false;
  #gone = false;

  constructor(socket: Socket, where: string, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#where = where;
    this.#owner = owner;
    socket.on("data", (chunk: Uint8Array) => this.#onData(plainBytes(chunk)));
    socket.on("end", () => this.#onEnd());
    socket.on("error", (error: unknown) => this.#onLost(error));
    socket.on("close", () => this.#onLost(undefined));
  }

  get alive(): boolean {
    return !this.#gone && !this.#socket.destroyed;
  }

  /** Sends a request; gives the answer once its head is there. One at a time. Throws UpstreamError. */
  send(exchange: Exchange): Promise<Answer> {
    const now = performance.now();
    const body = new AnswerBody({
      pause: () => this.#socket.pause(),
      resume: () => this.#socket.resume(),
      abandon: () => this.#fail("aborted", "the reader left"),
    });
    const running: Running = {
      exchange,
      body,
      parser: new AnswerParser({
        head: (head) => this.#onHead(running, head),
        data: (bytes) => this.#onBody(running, bytes),
        end: () => this.#onAnswered(running),
        fault: (reason, message) => this.#fail(reason, message),
      }, exchange),
      answer: Promise.withResolvers<Answer>(),
      onAbort: () => this.#fail("aborted", "the request was called off"),
      startedAt: now,
      head: undefined,
      streaming: false,
      written: false,
      lastByteAt: now,
    };
    this.#running = running;
    this.#answered = false;
    exchange.signal.addEventListener("abort", running.onAbort);
    this.#watch(now, exchange.firstByteTimeoutMs);
    this.#write(running);
    return running.answer.promise;
  }

  /** Whether any byte came back, interim heads included, since the last request was sent. */
  get answered(): boolean {
    return this.#answered;
  }

  destroy(): void {
    if (this.#running === undefined) this.#close();
    else this.#fail("aborted", "it was destroyed");
  }

  #write(running: Running): void {
    const { head, body } = running.exchange;
    const onWritten = (error?: Error | null): void => {
      if (error === undefined || error === null) running.written = true;
    };
    if (!(body instanceof Uint8Array)) {
      this.#socket.write(head);
      spawnTask("upload", () => this.#writeFrom(running, body));
    } else if (body.length <= JOIN_BYTES_MAX) {
      const whole = new Uint8Array(head.length + body.length);
      whole.set(head);
      whole.set(body, head.length);
      this.#socket.write(whole, onWritten);
    } else {
      // Both in one call of the system.
      this.#socket.cork();
      this.#socket.write(head);
      this.#socket.write(body, onWritten);
      this.#socket.uncork();
    }
  }

  /** No faster than the engine takes it, and no longer than it wants it. */
  async #writeFrom(running: Running, source: UpstreamBodySource): Promise<void> {
    try {
      for await (const chunk of source.chunks()) {
        if (this.#running !== running) return;
        if (!this.#socket.write(chunk)) await this.#drained();
      }
      if (this.#running === running) running.written = true;
    } catch (error) {
      if (this.#running !== running) return;
      this.#fail("request_invalid", `its body cannot be read: ${errorText(error)}`, error);
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#socket.off("drain", done).off("close", done);
        resolve();
      };
      this.#socket.on("drain", done).on("close", done);
    });
  }

  #onData(chunk: Uint8Array): void {
    const running = this.#running;
    // Bytes that nobody asked for: the next answer on this connection could not be trusted.
    if (running === undefined) return this.#close();
    this.#answered = true;
    running.lastByteAt = performance.now();
    const taken = running.parser.push(chunk);
    if (taken < chunk.length) this.#close();
  }

  #onHead(running: Running, head: ResponseHead): void {
    running.head = head;
    running.answer.resolve({ head, body: running.body });
  }

  #onBody(running: Running, bytes: Uint8Array): void {
    if (!running.streaming) {
      running.streaming = true;
      this.#watch(running.lastByteAt, running.exchange.idleTimeoutMs);
    }
    running.body.add(bytes);
  }

  #onAnswered(running: Running): void {
    this.#settle(running);
    running.body.end();
    // The last bytes may have paused it, and the next answer has another body.
    this.#socket.resume();
    const keepMs = running.head?.keepMs ?? 0;
    // An answer before the request was out leaves bytes that the engine would read as the next one.
    if (keepMs > 0 && running.written && this.alive) this.#owner.free(this, keepMs);
    else this.#close();
  }

  #onEnd(): void {
    this.#running?.parser.eof();
    this.#close();
  }

  #onLost(error: unknown): void {
    const text = error instanceof Error ? error.message : "the connection was closed";
    const running = this.#running;
    if (running !== undefined) this.#fail(running.head ? "cut" : "reset_before_head", text, error);
    this.#close();
  }

  /** Ends the exchange under way and the connection with it. */
  #fail(reason: UpstreamFailure, message: string, cause?: unknown): void {
    const running = this.#running;
    if (running === undefined) return;
    const error = new UpstreamError(reason, `Request to ${this.#where} failed: ${message}`, {
      cause,
    });
    this.#settle(running);
    running.answer.reject(error);
    running.body.fail(error);
    this.#close();
  }

  #settle(running: Running): void {
    running.exchange.signal.removeEventListener("abort", running.onAbort);
    if (this.#running === running) this.#running = undefined;
  }

  #close(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#timer?.clear();
    this.#socket.destroy();
    this.#owner.gone(this);
  }

  /**
   * One timer for all exchanges of the connection: setting one for every chunk of every stream, or
   * for every request, would cost more than the relay. One that strikes early does no harm: it looks
   * at what happened since, and sleeps for the rest.
   */
  #watch(now: number, sleepMs: number): void {
    const dueAt = now + sleepMs;
    if (dueAt >= this.#timerDueAt || sleepMs === Infinity) return;
    this.#timer?.clear();
    this.#timerDueAt = dueAt;
    this.#timer = deadline(sleepMs, () => {
      this.#timerDueAt = Infinity;
      if (this.#running !== undefined) this.#onTimer(this.#running);
    });
  }

  #onTimer(running: Running): void {
    const now = performance.now();
    const { firstByteTimeoutMs, idleTimeoutMs } = running.exchange;
    if (!running.streaming) {
      const leftMs = running.startedAt + firstByteTimeoutMs - now;
      if (leftMs > 0) return this.#watch(now, leftMs);
      return this.#fail("first_byte_timeout", `no body in ${firstByteTimeoutMs} ms`);
    }
    // While nobody reads, the socket may be paused and its silence is ours.
    if (!running.body.awaited) return this.#watch(now, idleTimeoutMs);
    const leftMs = Math.max(running.lastByteAt, running.body.awaitedSince) + idleTimeoutMs - now;
    if (leftMs > 0) return this.#watch(now, leftMs);
    this.#fail("idle_timeout", `silence for ${idleTimeoutMs} ms`);
  }
}
