/**
 * Relays a stream event by event: an event goes out whole and unchanged, or not at all.
 *
 * What precedes the first content is held, so that a failure until then can still be answered by
 * another replica, or by a real status. A stream is whole when every choice has its finish reason;
 * `[DONE]` alone proves nothing, since engines send it after a crash as well.
 */
import type { ErrorShape } from "../../core/engine_error_shape.ts";
import { createSseFramer } from "../../core/sse.ts";
import { type SseEvent, sseEvent } from "../../core/sse_event.ts";
import {
  createStreamMeter,
  type StreamDialect,
  type StreamMeter,
} from "../../core/usage_stream.ts";
import { type Failure, failureOfEngine, failureOfGarbage, failureOfUpstream } from "./failure.ts";
import type { Relayed } from "./relayed.ts";
import type { Reply, ReplyHeaders } from "../client/reply.ts";
import type { UpstreamResponse } from "../upstream.ts";
import { UpstreamError } from "../upstream_error.ts";

/** Longest event: room for a tool call of megabytes, and a bound on what one stream may hold. */
const EVENT_BYTES_MAX = 64 * 2 ** 20;

/** After its last event an engine may take so long to end the stream before we do. */
const LINGER_MS = 250;

const LF = 10;

/** How a stream ends that is whole, where the engine forgets to say so. */
const LAST_EVENTS: Readonly<Partial<Record<StreamDialect, Uint8Array>>> = {
  chat: encoded("data: [DONE]\n\n"),
  completions: encoded("data: [DONE]\n\n"),
  messages: encoded('event: message_stop\ndata: {"type":"message_stop"}\n\n'),
};

/** Dialects in which `[DONE]` is no event: engines send it all the same, and clients trip over it. */
const WITHOUT_DONE: ReadonlySet<StreamDialect> = new Set(["messages", "responses"]);

export interface StreamOptions {
  readonly dialect: StreamDialect;
  readonly errors: ErrorShape;
  readonly wantsUsage: boolean;
  /** Choices that a whole answer has. */
  readonly choices: number;
  readonly secrets: readonly string[];
  readonly headers: ReplyHeaders;
  readonly onContent: () => void;
}

/** How a stream ended from the engine's side; undefined while it goes on. */
type End = { readonly kind: "done" } | { readonly kind: "failed"; readonly failure: Failure };

/** Throws nothing that an engine or a client can cause. */
export async function relayStream(
  reply: Reply,
  answer: UpstreamResponse,
  options: StreamOptions,
): Promise<Relayed> {
  const stream = new StreamRelay(reply, options);
  const end = await pump(reply, answer, stream);
  return await stream.finish(end);
}

async function pump(reply: Reply, answer: UpstreamResponse, stream: StreamRelay): Promise<End> {
  const framer = createSseFramer();
  let linger: ReturnType<typeof setTimeout> | undefined;
  let end: End | undefined;
  try {
    for await (const chunk of answer.body) {
      // Read on after the last event only so that the connection can be used again.
      if (end !== undefined) break;
      end = await stream.relay(framer.push(chunk));
      if (end === undefined && framer.pendingBytes > EVENT_BYTES_MAX) {
        end = { kind: "failed", failure: failureOfGarbage("The engine sent an event without end") };
      }
      if (reply.gone.aborted) break;
      if (end === undefined) continue;
      if (end.kind === "failed" || !stream.whole) break;
      reply.end();
      linger = setTimeout(() => answer.destroy(), LINGER_MS);
    }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    if (end === undefined && !reply.gone.aborted) {
      end = stream.saidAll ? undefined : { kind: "failed", failure: failureOfUpstream(error) };
    }
  } finally {
    clearTimeout(linger);
  }
  const rest = end === undefined ? framer.end() : undefined;
  return end ?? (rest === undefined ? undefined : await stream.relay([rest])) ?? { kind: "done" };
}

class StreamRelay {
  readonly #reply: Reply;
  readonly #options: StreamOptions;
  readonly #meter: StreamMeter;
  /** What came before the first content. */
  readonly #held: Uint8Array[] = [];
  #committed = false;
  /** The engine has said something of its answer, so it has read the prompt. */
  #accepted = false;
  /** The client has the stream's last event. */
  #saidLast = false;

  constructor(reply: Reply, options: StreamOptions) {
    this.#reply = reply;
    this.#options = options;
    this.#meter = createStreamMeter(options.dialect, options.secrets);
  }

  /** Every choice has its finish reason. */
  get finished(): boolean {
    return this.#meter.finished;
  }

  /** And every choice that was asked for has begun: nothing can be missing of a stream that is cut. */
  get saidAll(): boolean {
    return this.finished && this.#meter.choices >= this.#options.choices;
  }

  /** The client has all of it, the last event included. */
  get whole(): boolean {
    return this.#saidLast;
  }

  /** Passes on what is to be passed on. Returns the end of the stream when `events` hold it. */
  async relay(events: readonly SseEvent[]): Promise<End | undefined> {
    const out: Uint8Array[] = [];
    let end: End | undefined;
    for (const event of events) {
      end = this.#take(event, out);
      if (end !== undefined) break;
    }
    if (out.length > 0) await this.#reply.write(joined(out));
    return end;
  }

  /** Ends the client's side, and says what became of the try. */
  async finish(end: End): Promise<Relayed> {
    const { usage, contentEvents } = this.#meter;
    const work = { usage, contentEvents, accepted: this.#accepted };
    if (this.#reply.gone.aborted) return { kind: "client_closed", work };
    const failure = end.kind === "failed" ? end.failure : this.#lack();
    if (failure !== undefined) {
      return this.#committed
        ? { kind: "broken", failure, work, response: this.#meter.response }
        : { kind: "failed", failure, work };
    }
    const last = this.#saidLast ? undefined : LAST_EVENTS[this.#options.dialect];
    if (last !== undefined) await this.#reply.write(last);
    if (this.#reply.state === "streaming") this.#reply.end();
    return { kind: "served", work };
  }

  #take(taken: SseEvent, out: Uint8Array[]): End | undefined {
    const event = taken.complete ? taken : completed(taken);
    // Broken off in the middle: whatever it was going to say, it does not say it.
    if (event === undefined) return this.finished ? { kind: "done" } : undefined;
    const verdict = this.#meter.observe(event);
    switch (verdict.kind) {
      case "silent":
        return undefined;
      case "usage":
        this.#accepted = true;
        if (this.#options.wantsUsage) this.#forward(event, out);
        return undefined;
      case "prelude":
        this.#accepted = true;
        this.#forward(event, out);
        return undefined;
      case "content":
      case "finish":
        this.#commit(out);
        out.push(event.raw);
        this.#options.onContent();
        // Of a Responses stream this is the last event; whatever follows is not for its clients.
        if (verdict.kind !== "finish" || this.#options.dialect !== "responses") return undefined;
        this.#saidLast = true;
        return { kind: "done" };
      case "done":
        if (!this.finished || !this.#committed) return { kind: "done" };
        if (event.isDone && WITHOUT_DONE.has(this.#options.dialect)) return { kind: "done" };
        this.#saidLast = true;
        out.push(event.raw);
        return { kind: "done" };
      case "error":
        return { kind: "failed", failure: failureOfEngine(verdict.error) };
      case "malformed":
        return {
          kind: "failed",
          failure: failureOfGarbage("The engine sent an event that is not JSON"),
        };
      default:
        return verdict satisfies never;
    }
  }

  #forward(event: SseEvent, out: Uint8Array[]): void {
    (this.#committed ? out : this.#held).push(event.raw);
  }

  #commit(out: Uint8Array[]): void {
    if (this.#committed) return;
    this.#committed = true;
    this.#reply.startStream(this.#options.headers);
    out.push(...this.#held);
    this.#held.length = 0;
  }

  /** What is missing for a whole answer. */
  #lack(): Failure | undefined {
    if (this.finished && this.#committed) return undefined;
    return failureOfGarbage(
      this.#committed
        ? "The engine's answer broke off before it was complete"
        : "The engine ended its answer without saying anything",
    );
  }
}

/**
 * The last event of a stream that ended without an empty line, when it is all there: a part of an
 * object is no object.
 */
function completed({ raw, data }: SseEvent): SseEvent | undefined {
  try {
    const json: unknown = JSON.parse(data ?? "");
    if (typeof json !== "object" || json === null) return undefined;
  } catch {
    return undefined;
  }
  return sseEvent(joined([raw, encoded(raw.at(-1) === LF ? "\n" : "\n\n")]), true);
}

function encoded(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
