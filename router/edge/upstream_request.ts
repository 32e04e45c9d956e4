/** Writes a request's head. Whatever could end a line early, or say its length twice, is refused. */
import { Buffer } from "node:buffer";
import { isIPv6 } from "node:net";
import { UpstreamError } from "./upstream_error.ts";

/** Where an engine listens. `host` is a name or an address; IPv6 with or without brackets. */
export interface UpstreamTarget {
  readonly host: string;
  readonly port: number;
  /** Absent: plain TCP. */
  readonly tls?: UpstreamTls;
}

export interface UpstreamTls {
  /** Name to ask for and to verify; `host` when absent. */
  readonly serverName?: string;
  /** PEM of the authorities to trust instead of the built-in ones. */
  readonly ca?: string;
}

/** Bytes, or what gives them piece by piece: each time from the start, for a body is sent again. */
export type UpstreamBody = Uint8Array | UpstreamBodySource;

export interface UpstreamBodySource {
  /** Exactly so many bytes come of `chunks()`. */
  readonly length: number;
  chunks(): AsyncIterable<Uint8Array>;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path with query, beginning with "/". */
  readonly path: string;
  /** Without `host` (unless it must differ), `connection`, and anything about the body's framing. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: UpstreamBody;
  /** Instead of the pool's, e.g. scaled by the prompt's length. */
  readonly firstByteTimeoutMs?: number;
  readonly idleTimeoutMs?: number;
}

const METHOD = /^[A-Z]{1,16}$/;
const PATH = /^\/[\x21-\x7e]*$/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that the client itself writes. */
const OWN: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** `host` without brackets, as sockets want it. */
export function bareHost(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}

/** The head of `request` in bytes. Throws `request_invalid`. */
export function requestHead(target: UpstreamTarget, request: UpstreamRequest): Uint8Array {
  if (!METHOD.test(request.method)) throw invalid(`method ${JSON.stringify(request.method)}`);
  if (!PATH.test(request.path)) throw invalid(`path ${JSON.stringify(request.path)}`);
  const lines = [`${request.method} ${request.path} HTTP/1.1`];
  let host = hostHeader(target);
  for (const [name, value] of Object.entries(request.headers)) {
    const lower = name.toLowerCase();
    if (!NAME.test(name)) throw invalid(`header name ${JSON.stringify(name)}`);
    if (OWN.has(lower)) throw invalid(`header ${lower}: the client writes it itself`);
    // The value is not shown: it may be a key.
    if (!VALUE.test(value)) throw invalid(`the value of header ${lower}`);
    if (lower === "host") host = value;
    else lines.push(`${name}: ${value}`);
  }
  lines.push(`host: ${host}`, "connection: keep-alive");
  const bodyless = request.method === "GET" || request.method === "HEAD";
  if (request.body.length > 0 || !bodyless) lines.push(`content-length: ${request.body.length}`);
  return latin1(`${lines.join("\r\n")}\r\n\r\n`);
}

const encoder = new TextEncoder();

/** Nearly all heads are ASCII, which encodes to the same bytes several times faster. */
function latin1(text: string): Uint8Array {
  const bytes = encoder.encode(text);
  return bytes.length === text.length ? bytes : Buffer.from(text, "latin1");
}

function hostHeader({ host, port, tls }: UpstreamTarget): string {
  const bare = bareHost(host);
  // A zone (fe80::1%eth0) means something on this machine only.
  const name = isIPv6(bare) ? `[${bare.replace(/%.*$/, "")}]` : bare;
  return port === (tls === undefined ? 80 : 443) ? name : `${name}:${port}`;
}

function invalid(what: string): UpstreamError {
  return new UpstreamError("request_invalid", `Cannot send a request to an engine: bad ${what}`);
}
