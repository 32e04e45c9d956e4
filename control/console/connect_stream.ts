/**
 * Reads an answer of the admin API that goes on: each message is a byte of flags, four of length, and
 * JSON. The last one has flag 2 and says whether it ended well.
 */
const HEADER_BYTES = 5;
const END_FLAG = 2;

/** One message as it is sent. */
export function frameOf(message: unknown): Uint8Array {
  const body = new TextEncoder().encode(JSON.stringify(message));
  const frame = new Uint8Array(HEADER_BYTES + body.length);
  new DataView(frame.buffer).setUint32(1, body.length);
  frame.set(body, HEADER_BYTES);
  return frame;
}

/** Hands over each message as it comes. Throws with the server's own words when it ended badly. */
export async function readMessages(
  stream: ReadableStream<Uint8Array>,
  onMessage: (message: unknown) => void,
): Promise<void> {
  const reader = stream.getReader();
  let rest = new Uint8Array();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest = joined(rest, value);
    for (;;) {
      if (rest.length < HEADER_BYTES) break;
      const view = new DataView(rest.buffer, rest.byteOffset);
      const end = HEADER_BYTES + view.getUint32(1);
      if (rest.length < end) break;
      const message: unknown = JSON.parse(
        new TextDecoder().decode(rest.subarray(HEADER_BYTES, end)),
      );
      if ((view.getUint8(0) & END_FLAG) !== 0) throwEnd(message);
      else onMessage(message);
      rest = rest.slice(end);
    }
  }
}

function throwEnd(message: unknown): void {
  if (typeof message !== "object" || message === null || !("error" in message)) return;
  const { error } = message;
  if (typeof error !== "object" || error === null) return;
  throw new Error("message" in error ? String(error.message) : "the stream ended with an error");
}

function joined(a: Uint8Array<ArrayBuffer>, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
