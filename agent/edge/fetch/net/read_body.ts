/** Reads the body of an answer, and gives it up when it only trickles. */
import { networkWords } from "@heddle/proto/error";
import { Retriable } from "./http.ts";

/** Less than that in a whole window is no transfer but a held connection. */
const TRICKLE_BYTES_PER_SECOND = 1_024;

/** One buffer that goes to and fro costs half of what a new one for each piece would. */
const BUFFER_BYTES = 256 * 1_024;

export interface BodyReader {
  /** Takes bytes; they are valid until it resolves. The time that it takes does not count. */
  readonly take: (bytes: Uint8Array) => Promise<void> | void;
  readonly stallMs: number;
  readonly signal: AbortSignal;
}

/** Resolves at the body's end. Throws Retriable when it breaks off, or the signal's reason. */
export async function readBody(response: Response, reading: BodyReader): Promise<void> {
  const { take, stallMs, signal } = reading;
  if (response.body === null) return;
  const reader = response.body.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  let stalled = false;
  let waiting = false;
  let seen = 0;
  const enough = TRICKLE_BYTES_PER_SECOND * stallMs / 1_000;
  const cancel = () => void reader.cancel().catch(() => {});
  const timer = setInterval(() => {
    if (waiting && seen < enough) {
      stalled = true;
      cancel();
    }
    seen = 0;
  }, stallMs);
  signal.addEventListener("abort", cancel);
  try {
    for (;;) {
      waiting = true;
      const { value, done } = await reader.read(new Uint8Array(buffer));
      waiting = false;
      signal.throwIfAborted();
      if (stalled) throw trickled(stallMs);
      if (done) return;
      seen += value.length;
      await take(value);
      buffer = value.buffer;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TypeError) {
      throw new Retriable(`the connection broke: ${networkWords(error)}`);
    }
    throw error;
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

function trickled(stallMs: number): Retriable {
  const text = `it sent next to nothing for ${Math.round(stallMs / 1_000)} s`;
  return new Retriable(text, { stalled: true });
}

/** The whole body as text, when it is not longer than `bytesMax`. */
export async function readText(
  response: Response,
  bytesMax: number,
  reading: Omit<BodyReader, "take">,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  await readBody(response, {
    ...reading,
    take(bytes) {
      size += bytes.length;
      if (size > bytesMax) throw new Retriable(`it is longer than ${bytesMax} bytes`);
      text += decoder.decode(bytes, { stream: true });
    },
  });
  return text + decoder.decode();
}
