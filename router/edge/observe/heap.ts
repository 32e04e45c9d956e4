/**
 * `/debug/heap` on the admin listener: what is in this process's memory, for Chrome's developer
 * tools. That is keys and prompts too, so only this machine gets it, and only where it is allowed.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { getHeapSnapshot } from "node:v8";
import { isLoopback } from "@heddle/common/address";

/** Answers with a snapshot. Taking it stops everything else for about a second per 100 MB. */
export function sendHeap(request: IncomingMessage, response: ServerResponse): void {
  if (!isLoopback(request.socket.remoteAddress ?? "")) {
    response.writeHead(403, { "content-type": "text/plain" });
    response.end("only from this machine: a snapshot holds keys and prompts\n");
    return;
  }
  response.writeHead(200, {
    "content-type": "application/json",
    "content-disposition": 'attachment; filename="heddle-router.heapsnapshot"',
  });
  const snapshot: Readable = getHeapSnapshot();
  snapshot.pipe(response);
}
