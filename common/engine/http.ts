/**
 * One request to an engine. Not `fetch`: that would go through a proxy which the
 * environment names, and keep connections that nobody closes.
 */
import http from "node:http";
import https from "node:https";
import type { Address } from "../address.ts";
import { errorText } from "@heddle/proto/error";

/** No answer that we ask for is larger; more is not read. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;

export interface EngineRequest {
  readonly address: Address;
  readonly path: string;
  /** Over TLS. @default false */
  readonly secure?: boolean;
  readonly apiKey: string;
  readonly deadlineMs: number;
  /** JSON body; absent: a GET. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

export type EngineAnswer =
  | { readonly kind: "answer"; readonly status: number; readonly text: string }
  /** Nobody listens. */
  | { readonly kind: "refused" }
  | { readonly kind: "failed"; readonly why: string };

/** Never rejects. */
export function askEngine(request: EngineRequest): Promise<EngineAnswer> {
  const { promise, resolve } = Promise.withResolvers<EngineAnswer>();
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  const sent = (request.secure === true ? https : http).request({
    host: request.address.host,
    port: request.address.port,
    path: request.path,
    method: body === undefined ? "GET" : "POST",
    agent: false,
    headers: {
      ...(request.apiKey === "" ? {} : { authorization: `Bearer ${request.apiKey}` }),
      ...(body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": String(bytesOf(body)) }),
    },
  });
  const timer = setTimeout(() => {
    finish({ kind: "failed", why: `no answer within ${request.deadlineMs / 1_000} s` });
  }, request.deadlineMs);
  const abort = () => finish({ kind: "failed", why: "given up" });
  const finish = (answer: EngineAnswer): void => {
    clearTimeout(timer);
    request.signal.removeEventListener("abort", abort);
    sent.destroy();
    resolve(answer);
  };
  request.signal.addEventListener("abort", abort);
  sent.on("error", (error: Error & { code?: string }) => {
    finish(
      error.code === "ECONNREFUSED"
        ? { kind: "refused" }
        : { kind: "failed", why: errorText(error) },
    );
  });
  sent.on("response", (response) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    response.on("data", (chunk: Uint8Array) => {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) finish({ kind: "failed", why: "its answer does not end" });
      else chunks.push(chunk);
    });
    response.on("error", (error: Error) => finish({ kind: "failed", why: errorText(error) }));
    response.on("end", () => {
      const text = new TextDecoder().decode(joined(chunks, length));
      finish({ kind: "answer", status: response.statusCode ?? 0, text });
    });
    response.on("close", () => finish({ kind: "failed", why: "it cut its answer off" }));
  });
  sent.end(body);
  return promise;
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
