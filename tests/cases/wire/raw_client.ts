/** A client over raw TCP: it can say what no library would, and leave when it wants. */
import { Buffer } from "node:buffer";
import { connect } from "node:net";
import type { CaseClient } from "../case_schema.ts";
import { unchunked } from "./scripted_engine.ts";

/** What came back. Times count from the moment the request was sent. */
export interface ClientAnswer {
  /** 0 when no head came. */
  readonly status: number;
  /** Lower-cased; the last one of a name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  /** The body came to its own end. */
  readonly whole: boolean;
  /** When each part of the raw answer arrived. */
  readonly arrivals: readonly { readonly atMs: number; readonly text: string }[];
  readonly durationMs: number;
  /** When the client left before the end, by the monotonic clock. */
  readonly leftAt: number | undefined;
}

export interface ClientRequest {
  readonly port: number;
  /** The request as it goes over the wire. */
  readonly bytes: Uint8Array;
  readonly client: CaseClient;
  /** No answer takes longer. */
  readonly limitMs: number;
}

/** Sends `bytes` and collects the answer until the connection ends or the client leaves. */
export function send({ port, bytes, client, limitMs }: ClientRequest): Promise<ClientAnswer> {
  const { promise, resolve } = Promise.withResolvers<ClientAnswer>();
  const socket = connect({ host: "127.0.0.1", port });
  const parts: Buffer[] = [];
  const arrivals: { atMs: number; text: string }[] = [];
  const events = client.disconnect_after_events;
  let sentAt = performance.now();
  let leftAt: number | undefined;
  let dataLines = 0;
  const leave = (): void => {
    leftAt ??= performance.now();
    socket.destroy();
  };
  const limit = setTimeout(leave, limitMs);
  const leaving = client.disconnect_after_ms === undefined
    ? undefined
    : setTimeout(leave, client.disconnect_after_ms);
  socket.setNoDelay(true);
  socket.on("connect", () => {
    sentAt = performance.now();
    socket.write(bytes);
  });
  socket.on("data", (chunk: Uint8Array) => {
    const text = Buffer.from(chunk).toString("latin1");
    parts.push(Buffer.from(chunk));
    arrivals.push({ atMs: performance.now() - sentAt, text });
    dataLines += text.match(/^data:/gm)?.length ?? 0;
    if (events !== undefined && dataLines >= events) leave();
  });
  // A reset ends an answer as well as a close does; whether it was whole, its framing says.
  socket.on("error", () => {});
  socket.on("close", () => {
    clearTimeout(limit);
    clearTimeout(leaving);
    const durationMs = performance.now() - sentAt;
    resolve({ ...readAnswer(Buffer.concat(parts)), arrivals, durationMs, leftAt });
  });
  return promise;
}

/** Takes the raw bytes of one answer apart. */
export function readAnswer(
  bytes: Buffer,
): Pick<ClientAnswer, "status" | "headers" | "body" | "whole"> {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return { status: 0, headers: new Map(), body: new Uint8Array(0), whole: false };
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const status = Number(first.split(" ")[1]);
  if (status === 100) return readAnswer(bytes.subarray(end + 4));
  const headers = new Map(lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  }));
  const rest = bytes.subarray(end + 4);
  if (headers.get("transfer-encoding") === "chunked") {
    const body = unchunked(bytes, end + 4);
    return { status, headers, body: body?.bytes ?? cutChunks(rest), whole: body !== undefined };
  }
  const length = headers.get("content-length");
  return {
    status,
    headers,
    body: rest,
    whole: status === 204 || length === undefined || rest.length === Number(length),
  };
}

/** The data in chunks whose last one never came. */
function cutChunks(bytes: Buffer): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0;;) {
    const line = bytes.indexOf("\r\n", at);
    const size = line < 0 ? NaN : Number.parseInt(bytes.toString("latin1", at, line), 16);
    if (!(size > 0)) return Buffer.concat(parts);
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}
