/**
 * Reads the head of an engine's answer, strictly. Whatever two parsers could read differently (two
 * lengths, a length beside chunks, folded lines, a space before the colon, a bare LF) is refused:
 * a connection on which we disagree with the engine about where an answer ends would give the next
 * client the rest of this one's.
 */

/** How the body's end is told. */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked" }
  | { readonly kind: "close" };

export interface ResponseHead {
  readonly kind: "head";
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly framing: Framing;
  /** How long the connection may be kept after this answer; 0: not at all. Infinity: no promise. */
  readonly keepMs: number;
}

export interface HeadFault {
  readonly kind: "fault";
  readonly message: string;
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;
const LENGTH = /^[0-9]{1,15}$/;

/** Headers of which a second one makes the answer ambiguous. */
const ONCE: ReadonlySet<string> = new Set(["content-length", "transfer-encoding"]);

/** Time that a peer's announced keep-alive loses to the network and to two clocks. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

/** Reads `text` (latin-1, without the empty line), the answer to a request with that `method`. */
export function readHead(text: string, method: string): ResponseHead | HeadFault {
  const [first = "", ...lines] = text.split("\r\n");
  const status = STATUS_LINE.exec(first);
  if (status === null) return fault(`status line ${quoted(first)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const header = HEADER_LINE.exec(line);
    if (header === null) return fault(`header line ${quoted(line)}`);
    const name = (header[1] ?? "").toLowerCase();
    const value = (header[2] ?? "").trimEnd();
    const before = headers.get(name);
    if (before !== undefined && ONCE.has(name)) return fault(`${name} appears twice`);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const code = Number(status[2]);
  const http11 = status[1] === "1";
  const framing = readFraming({ code, http11, method, headers });
  if (framing.kind === "fault") return framing;
  const keepMs = framing.kind === "close" ? 0 : readKeepMs(headers, http11);
  return { kind: "head", status: code, headers, framing, keepMs };
}

interface FramingInput {
  readonly code: number;
  readonly http11: boolean;
  readonly method: string;
  readonly headers: ReadonlyMap<string, string>;
}

function readFraming({ code, http11, method, headers }: FramingInput): Framing | HeadFault {
  const length = headers.get("content-length");
  const transfer = headers.get("transfer-encoding");
  if (length !== undefined && transfer !== undefined) {
    return fault("content-length and transfer-encoding together");
  }
  if (length !== undefined && !LENGTH.test(length)) return fault(`length ${quoted(length)}`);
  if (transfer !== undefined && transfer.toLowerCase() !== "chunked") {
    return fault(`transfer-encoding ${quoted(transfer)}`);
  }
  if (transfer !== undefined && !http11) return fault("transfer-encoding in HTTP/1.0");
  if (code < 200 || code === 204 || code === 304 || method === "HEAD") return { kind: "none" };
  if (transfer !== undefined) return { kind: "chunked" };
  if (length === undefined) return { kind: "close" };
  return length === "0" ? { kind: "none" } : { kind: "length", bytes: Number(length) };
}

function readKeepMs(headers: ReadonlyMap<string, string>, http11: boolean): number {
  const options = (headers.get("connection") ?? "").toLowerCase().split(",").map((o) => o.trim());
  if (options.includes("close")) return 0;
  if (!http11 && !options.includes("keep-alive")) return 0;
  const announced = /(?:^|,)\s*timeout=([0-9]{1,6})/i.exec(headers.get("keep-alive") ?? "");
  if (announced === null) return Infinity;
  return Math.max(0, Number(announced[1]) * 1_000 - KEEP_ALIVE_MARGIN_MS);
}

function fault(message: string): HeadFault {
  return { kind: "fault", message };
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
