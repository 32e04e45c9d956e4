/** Reads a stream's events as they pass: what each one is, whether the stream is whole, its usage. */
import type { EngineError } from "./engine_error.ts";
import type { SseEvent } from "./sse_event.ts";
import type { Usage } from "./usage.ts";

/** How a route's stream speaks. `events`: typed events without more (transcriptions). */
export type StreamDialect = "chat" | "completions" | "responses" | "messages" | "events";

/**
 * What an event is to the relay.
 * - `silent`: drop; see `SseEvent.isSilent`.
 * - `prelude`: role or lifecycle, no content yet. Forward, but it does not hold the status line
 *   open: a failure may still be answered by another replica.
 * - `content`: something a user reads. No retry from here on.
 * - `finish`: ends a choice or the answer; counts as content.
 * - `usage`: usage and nothing else; drop unless the client asked.
 * - `error`: in `error`.
 * - `done`: `[DONE]`, or the dialect's own last event.
 * - `malformed`: data that is not JSON, or not an object.
 */
export type Verdict =
  | { readonly kind: "silent" | "prelude" | "content" | "finish" | "usage" | "done" | "malformed" }
  | { readonly kind: "error"; readonly error: EngineError };

export interface StreamMeter {
  /** Judges the next event, once each, in order. */
  observe(event: SseEvent): Verdict;
  /** The last usage seen; usage in a stream is cumulative, so the last one counts. */
  readonly usage: Usage | undefined;
  /** Every choice that began has a finish reason (or the dialect's terminal event came). */
  readonly finished: boolean;
  /** Content events so far: a lower bound of the generated tokens when no usage came. */
  readonly contentEvents: number;
}

/** A meter for one stream. `secrets` are kept out of the errors it returns. */
export function createStreamMeter(
  _dialect: StreamDialect,
  _secrets: readonly string[] = [],
): StreamMeter {
  throw new Error("not built yet");
}
