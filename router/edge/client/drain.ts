/**
 * Reads what is left of a body whose request has been answered already, as one without a key is.
 * Nobody else would: the client would wait for ever with the rest of it, and so would the next
 * request on its connection.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

/** What official clients send at a time, a few images included; from others it is too much to ask. */
const BYTES_MAX = 16 * 2 ** 20;
const MS_MAX = 30_000;

/** Does so when `response` is out, and ends the connection when there is more than that. */
export function drainAfter(request: IncomingMessage, response: ServerResponse): void {
  response.on("finish", () => {
    if (!request.complete && !request.destroyed) drain(request);
  });
}

function drain(request: IncomingMessage): void {
  const { socket } = request;
  let bytes = 0;
  const timer = setTimeout(() => socket.destroy(), MS_MAX);
  request.on("data", (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) socket.destroy();
  });
  const over = (): void => {
    clearTimeout(timer);
    socket.off("close", over);
  };
  request.on("error", () => {});
  request.on("end", over);
  socket.on("close", over);
  request.resume();
}
