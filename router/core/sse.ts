/**
 * Frames a byte stream of server-sent events into events, without touching a byte.
 *
 * A line ends in LF, CR or CRLF, and an event at an empty line. A CR at the end of what has arrived
 * is ambiguous: an LF that belongs to it may follow. Waiting would hold back every event of a
 * stream that ends its lines in CR; not waiting would tear CRLF apart. So an empty line's CR waits
 * for its LF only where the line before ended in CRLF. Elsewhere the event is out at once, and an
 * LF that follows after all is an empty line of its own, which by the standard says nothing. The
 * rule looks only at bytes, so that every cut of a stream gives the same events.
 */
import { type SseEvent, sseEvent } from "./sse_event.ts";

export interface SseFramer {
  /** The events that `chunk` completes. Keeps a reference to `chunk` until its event is out. */
  push(chunk: Uint8Array): SseEvent[];
  /** What is left when the stream ends: an event that broke off, or a last one that ends in CR. */
  end(): SseEvent | undefined;
  /** Bytes held for an event that is not complete. The caller bounds them. */
  readonly pendingBytes: number;
}

/**
 * A framer for one stream. The same bytes give the same events however they are cut, and the raw
 * bytes of all events (with the rest from `end()`) are the input.
 */
export function createSseFramer(): SseFramer {
  return new Framer();
}

const LF = 10;
const CR = 13;
const BOM = [0xef, 0xbb, 0xbf] as const;

type LineEnd = "none" | "lf" | "cr" | "crlf";

class Framer implements SseFramer {
  /** Chunks of the event under way; joined once, when it is complete. */
  #parts: Uint8Array[] = [];
  #pending = 0;
  /** How the last line ended. */
  #last: LineEnd = "none";
  /** The current line has no byte yet. */
  #lineEmpty = true;
  /** The last byte was a CR that ended a line with content: an LF would be part of it. */
  #afterCr = false;
  /** An event ended in CRLF CR: an LF would be part of it. */
  #awaitsLf = false;
  /** How many bytes of a byte order mark have been seen; -1 once the start is behind us. */
  #bomSeen = 0;

  get pendingBytes(): number {
    return this.#pending;
  }

  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    /** Where the event under way begins in `chunk`. */
    let start = 0;
    const emit = (end: number): void => {
      events.push(this.#take(chunk.subarray(start, end)));
      start = end;
    };
    let at = this.#bomSeen < 0 ? 0 : this.#skipBom(chunk, emit);
    let lf = -1;
    let cr = -1;
    while (at < chunk.length) {
      const byte = chunk[at];
      if (this.#awaitsLf) {
        this.#awaitsLf = false;
        if (byte === LF) at++;
        this.#last = byte === LF ? "crlf" : "cr";
        emit(at);
      } else if (this.#afterCr) {
        this.#afterCr = false;
        if (byte === LF) at++;
        this.#last = byte === LF ? "crlf" : "cr";
      } else if (this.#lineEmpty && byte === LF) {
        this.#last = "lf";
        emit(++at);
      } else if (this.#lineEmpty && byte === CR) {
        at++;
        if (this.#last === "crlf") this.#awaitsLf = true;
        else {
          this.#last = "cr";
          emit(at);
        }
      } else {
        if (lf < at) lf = indexOrEnd(chunk, LF, at);
        if (cr < at) cr = indexOrEnd(chunk, CR, at);
        const end = Math.min(lf, cr);
        this.#lineEmpty = end < chunk.length;
        if (end === lf) this.#last = "lf";
        this.#afterCr = end < chunk.length && end === cr;
        at = end + 1;
      }
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
    return events;
  }

  end(): SseEvent | undefined {
    if (this.#pending === 0) return undefined;
    const complete = this.#awaitsLf;
    this.#awaitsLf = false;
    return this.#take(new Uint8Array(0), complete);
  }

  /** Steps over a byte order mark at the stream's start and emits it as an event of its own. */
  #skipBom(chunk: Uint8Array, emit: (end: number) => void): number {
    let at = 0;
    while (at < chunk.length && this.#bomSeen >= 0 && chunk[at] === BOM[this.#bomSeen]) {
      at++;
      this.#bomSeen++;
      if (this.#bomSeen === BOM.length) {
        this.#bomSeen = -1;
        emit(at);
        return at;
      }
    }
    if (at < chunk.length) {
      // Not a mark after all: what looked like its beginning is the beginning of a line.
      if (this.#bomSeen > 0) this.#lineEmpty = false;
      this.#bomSeen = -1;
    }
    return at;
  }

  #hold(part: Uint8Array): void {
    this.#parts.push(part);
    this.#pending += part.length;
  }

  #take(tail: Uint8Array, complete = true): SseEvent {
    this.#lineEmpty = true;
    if (this.#parts.length === 0) return sseEvent(tail, complete);
    this.#hold(tail);
    const raw = joined(this.#parts, this.#pending);
    this.#parts = [];
    this.#pending = 0;
    return sseEvent(raw, complete);
  }
}

function indexOrEnd(chunk: Uint8Array, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from);
  return index < 0 ? chunk.length : index;
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
