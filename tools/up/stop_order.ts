/** How `down` tells a running `up` to stop, over loopback, and hears what it did. */
import http from "node:http";
import type { Session } from "./session_file.ts";

/** Engines may take their time; `up` itself bounds every step. */
const STOP_ANSWER_MS_MAX = 120_000;

export interface StopOrders {
  readonly port: number;
  /** Resolves when an order arrives, with a way to answer it line by line. */
  readonly ordered: Promise<{ say(line: string): void; end(): void }>;
  close(): Promise<void>;
}

/** Listens for one order that carries `token`. */
export async function awaitStopOrder(token: string): Promise<StopOrders> {
  const { promise, resolve } = Promise.withResolvers<{ say(line: string): void; end(): void }>();
  const server = http.createServer((request, response) => {
    if (request.method !== "POST" || request.headers.authorization !== `Bearer ${token}`) {
      response.writeHead(403).end();
      return;
    }
    response.writeHead(200, { "content-type": "text/plain" });
    response.flushHeaders();
    resolve({
      say: (line) => void response.write(`${line}\n`),
      end: () => void response.end(),
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : 0,
    ordered: promise,
    close() {
      // The last lines of an answer may still be on their way to `down`.
      server.closeIdleConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

/** True when the `up` behind `session` answers; it is not told to stop. */
export async function isRunning(session: Session): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${session.stopPort}/`, {
      headers: { authorization: "Bearer -" },
      signal: AbortSignal.timeout(2_000),
    });
    await response.body?.cancel();
    return response.status === 403;
  } catch {
    return false;
  }
}

/** Orders `up` to stop and passes on what it says. False when nothing answers. */
export async function orderStop(session: Session, say: (line: string) => void): Promise<boolean> {
  let response: Response;
  try {
    response = await fetch(`http://127.0.0.1:${session.stopPort}/`, {
      method: "POST",
      headers: { authorization: `Bearer ${session.token}` },
      signal: AbortSignal.timeout(STOP_ANSWER_MS_MAX),
    });
  } catch {
    return false;
  }
  if (!response.ok) {
    await response.body?.cancel();
    return false;
  }
  for (const line of (await response.text()).split("\n")) if (line !== "") say(line);
  return true;
}
