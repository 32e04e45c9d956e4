/** Reading a request's body. */
import type { IncomingMessage } from "node:http";
import { RequestError } from "../core/openai/request_error.ts";

/** Far above any context that a client could mean to send; without a bound one request could fill the memory. */
const BODY_BYTES_MAX = 256 << 20;

/** The body as text. @throws RequestError 413 when it is too large. Rejects when the client goes away. */
export async function readBody(request: IncomingMessage): Promise<string> {
  return new TextDecoder().decode(await readBytes(request));
}

/** The body as it is. @throws RequestError 413 when it is too large. Rejects when the client goes away. */
export async function readBytes(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("a body arrived decoded");
    length += chunk.length;
    if (length > BODY_BYTES_MAX) {
      throw new RequestError(413, `The request's body is larger than ${BODY_BYTES_MAX} bytes.`);
    }
    chunks.push(chunk);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
