/** A case's request as it goes over the wire. */
import { Buffer } from "node:buffer";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import type { CaseRequest } from "../case_schema.ts";

const CREDENTIALS = ["authorization", "x-api-key", "api-key"];
/** A CORS preflight carries none. */
const WITHOUT_KEY = "OPTIONS";

/** The body that a request has, if any. */
export function bodyOf(
  { body_file: file, json }: CaseRequest,
  read: (file: string) => Uint8Array,
): Uint8Array {
  if (json !== undefined) return Buffer.from(JSON.stringify(json));
  return file === undefined ? new Uint8Array(0) : read(file);
}

export interface SendOptions {
  readonly transfer: "content-length" | "chunked";
  /** The key that KEY, KEY1 or KEY2 stands for. */
  readonly keyOf: (name: string) => string;
}

/** The whole request, with KEY unless the case shows a credential of its own. */
export function requestBytes(
  request: CaseRequest,
  body: Uint8Array,
  { transfer, keyOf }: SendOptions,
): Uint8Array {
  const named = new Set(Object.keys(request.headers).map((name) => name.toLowerCase()));
  const bodiless = request.body_file === undefined && request.json === undefined;
  const own = request.raw_header !== undefined || CREDENTIALS.some((name) => named.has(name));
  const lines = [
    `${request.method} ${request.path} HTTP/1.1`,
    "host: router.test",
    "connection: close",
    ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
    ...(request.raw_header === undefined ? [] : [expanded(request.raw_header)]),
    ...(own || request.method === WITHOUT_KEY ? [] : ["authorization: Bearer KEY"]),
    ...(named.has("content-type") || bodiless ? [] : ["content-type: application/json"]),
  ].map((line) => line.replace(/\bKEY[12]?$/, keyOf));
  if (bodiless) return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
  const chunked = transfer === "chunked";
  lines.push(chunked ? "transfer-encoding: chunked" : `content-length: ${body.length}`);
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
  return Buffer.concat([head, chunked ? inChunks(body) : body]);
}

/** What an engine should get to see of `body`: not compressed. */
export function plainBody(request: CaseRequest, body: Uint8Array): Uint8Array {
  const encoding = Object.entries(request.headers)
    .find(([name]) => name.toLowerCase() === "content-encoding")?.[1];
  const options = { maxOutputLength: 2 ** 24 };
  try {
    if (encoding === "gzip") return gunzipSync(body, options);
    if (encoding === "zstd") return zstdDecompressSync(body, options);
  } catch {
    // A bomb, or corrupt on purpose: no engine is to see it.
  }
  return body;
}

/** "aaa...(64 KiB)" stands for that many bytes of the last character. */
function expanded(line: string): string {
  return line.replace(
    /(.)\.\.\.\((\d+) KiB\)$/,
    (_, char: string, kib: string) => char.repeat(Number(kib) * 1_024),
  );
}

/** Uneven pieces: a boundary or a name may be cut anywhere. */
function inChunks(body: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0, size = 1; at < body.length; at += size, size = (size * 7) % 997 + 1) {
    const piece = body.subarray(at, at + size);
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}
