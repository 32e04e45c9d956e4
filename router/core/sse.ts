/** Frames a byte stream of server-sent events into events, without touching a byte. */

/**
 * One event, or what lies between events, with its bytes as they came, terminator included. What
 * it says is decoded when first asked for.
 */
export interface SseEvent {
  readonly raw: Uint8Array;
  /** False only for what `end()` returns when the stream broke off inside an event. */
  readonly complete: boolean;
  /** The `event:` field, "" without one. */
  readonly name: string;
  /** The `data:` lines joined with "\n"; undefined when there is no data line. */
  readonly data: string | undefined;
  /** Comments and nothing else: a heartbeat. */
  readonly isComment: boolean;
  /** `data: [DONE]`. */
  readonly isDone: boolean;
  /**
   * Nothing a client should see as an event: comments, fields without data, empty data, blank
   * lines, a byte order mark. Some official SDKs throw on such events, so a relay drops them.
   */
  readonly isSilent: boolean;
}

export interface SseFramer {
  /** The events that `chunk` completes. Keeps a reference to `chunk` until its event is out. */
  push(chunk: Uint8Array): SseEvent[];
  /** What was left when the stream ended: an event that broke off, or the last one if it ended in CR. */
  end(): SseEvent | undefined;
  /** Bytes held for an event that is not complete. The caller bounds them. */
  readonly pendingBytes: number;
}

/**
 * A framer for one stream. The same bytes give the same events however they are cut, and the raw
 * bytes of all events (with the rest from `end()`) are the input.
 */
export function createSseFramer(): SseFramer {
  throw new Error("not built yet");
}
