/** An upload's bytes as they are read, unpacked where they came packed. */
import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { type Coding, createInflater } from "../body/body_reader.ts";

/** Thrown by the bytes for what a client did. */
export class PackedError extends Error {
  readonly reason: "too_large" | "corrupt";

  constructor(reason: "too_large" | "corrupt", message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }
}

/**
 * The bytes of `request`'s body. More than `wireBytesMax` of a packed one are not taken: what they
 * unpack to may be nothing, for ever. Leaving the loop over them does not end the connection, which
 * still has to carry the refusal. Throws `PackedError`, and any other error where the client left.
 */
export function plainBody(
  request: IncomingMessage,
  coding: Coding,
  wireBytesMax: number,
): AsyncIterable<unknown> {
  if (coding === "identity") return request.iterator({ destroyOnReturn: false });
  const inflater = createInflater(coding);
  let wireBytes = 0;
  request.on("data", (chunk: Uint8Array) => {
    wireBytes += chunk.length;
    if (wireBytes > wireBytesMax) inflater.destroy(new PackedError("too_large", "too large"));
  });
  request.on("close", () => {
    if (!request.readableEnded) inflater.destroy(new ClientLeft());
  });
  request.pipe(inflater);
  return unpacked(inflater, coding);
}

class ClientLeft extends Error {}

async function* unpacked(inflater: Transform, coding: Coding): AsyncGenerator<unknown> {
  try {
    yield* inflater;
  } catch (error) {
    if (error instanceof PackedError || error instanceof ClientLeft) throw error;
    throw new PackedError("corrupt", `The body does not unpack as ${coding}`, { cause: error });
  }
}
