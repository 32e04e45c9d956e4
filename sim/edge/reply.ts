/** Writing an answer to a client: JSON, or a stream of events. */
import type { ServerResponse } from "node:http";

/** Sends a whole JSON answer. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  sendText(response, status, { type: "application/json", text: JSON.stringify(body) });
}

/** Sends a whole answer that is JSON, or plain text. */
export function sendWhole(response: ServerResponse, body: object | string): void {
  if (typeof body !== "string") return sendJson(response, 200, body);
  sendText(response, 200, { type: "text/plain; charset=utf-8", text: body });
}

/** Sends a whole answer of any type. */
export function sendText(
  response: ServerResponse,
  status: number,
  content: { readonly type: string; readonly text: string },
): void {
  if (response.writableEnded || response.destroyed) return;
  const bytes = new TextEncoder().encode(content.text);
  response.writeHead(status, { "content-type": content.type, "content-length": bytes.length });
  response.end(bytes);
}

/** Sends the head of an event stream, so that the client hears at once that it was accepted. */
export function startEvents(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
}

/** Sends events; several at once are one write. */
export function sendEvents(response: ServerResponse, events: readonly object[]): void {
  if (events.length === 0) return;
  response.write(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
}

/** Sends events that are called by their type. */
export function sendTypedEvents(response: ServerResponse, events: readonly object[]): void {
  if (events.length === 0) return;
  response.write(
    events.map((event) => {
      const name = "type" in event ? `event: ${event.type}\n` : "";
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    }).join(""),
  );
}

/** Ends a stream, with vLLM's closing line or, as a fault, without. */
export function endEvents(response: ServerResponse, options: { done: boolean }): void {
  response.end(options.done ? "data: [DONE]\n\n" : "");
}

/** Resets the connection: what was not delivered yet is lost, and the client sees an error. */
export function resetConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}
