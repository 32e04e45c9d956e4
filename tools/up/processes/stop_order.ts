/** How `down` tells a running `up` to stop, over loopback, and hears what it did. */
import http from "node:http";
import { HeddleError } from "@heddle/proto/error";
import type { Session } from "./session_file.ts";

/** Longest silence between two lines: an engine's stop timeout, and what `up` adds to it. */
const STOP_SILENCE_MS_MAX = 180_000;

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

/**
 * Orders `up` to stop and passes on each line as it is said. False when nothing answers, or when it
 * dies over it. Throws `unavailable` when it falls silent.
 */
export async function orderStop(session: Session, say: (line: string) => void): Promise<boolean> {
  const silence = new AbortController();
  const wait = () => setTimeout(() => silence.abort(), STOP_SILENCE_MS_MAX);
  let timer = wait();
  try {
    const response = await fetch(`http://127.0.0.1:${session.stopPort}/`, {
      method: "POST",
      headers: { authorization: `Bearer ${session.token}` },
      signal: silence.signal,
    });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      return false;
    }
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = wait();
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) say(line);
    }
    return true;
  } catch {
    if (!silence.signal.aborted) return false;
    throw new HeddleError(
      "unavailable",
      `Cannot stop: the up behind port ${session.stopPort} has said nothing for ` +
        `${STOP_SILENCE_MS_MAX / 1_000} s`,
    );
  } finally {
    clearTimeout(timer);
  }
}
