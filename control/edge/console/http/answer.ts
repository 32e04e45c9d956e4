/** Requests and answers of the console, the same over HTTP/1.1 and HTTP/2. */
import type { HttpHandler } from "@heddle/common/rpc_server";
import { type ErrorCode, errorText, HeddleError } from "@heddle/proto/error";

export type WebRequest = Parameters<HttpHandler>[0];
export type WebResponse = Parameters<HttpHandler>[1];

/** Largest body that is read: a long conversation in the playground. */
const BODY_BYTES_MAX = 1_048_576;

/** Answers with JSON. */
export function sendJson(response: WebResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

/** Says why not. What is no HeddleError is not for the eyes of others. */
export function sendError(response: WebResponse, error: unknown): void {
  const known = error instanceof HeddleError;
  const message = known ? errorText(error) : "internal error; control's log has it";
  sendJson(response, known ? statusOf(error.code) : 500, { message });
}

/** The body as text. Throws `invalid_input` when it is too long. */
export async function readBody(request: WebRequest): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!(chunk instanceof Uint8Array)) continue;
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) {
      throw new HeddleError("invalid_input", `Cannot read more than ${BODY_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  return new TextDecoder().decode(await new Blob(chunks.map((each) => each.slice())).bytes());
}

/** The body as JSON. Throws `invalid_input` when it is none. */
export async function readJson(request: WebRequest): Promise<unknown> {
  const text = await readBody(request);
  try {
    return JSON.parse(text);
  } catch {
    throw new HeddleError("invalid_input", "Cannot read the request: want JSON");
  }
}

/** The value of a header that is sent once; undefined when it is not there. */
export function header(request: WebRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function statusOf(code: ErrorCode): number {
  switch (code) {
    case "invalid_input":
      return 400;
    case "unauthenticated":
      return 401;
    case "permission_denied":
      return 403;
    case "not_found":
      return 404;
    case "failed_precondition":
      return 409;
    case "exhausted":
      return 429;
    case "unavailable":
      return 503;
    case "timeout":
      return 504;
    case "protocol":
    case "system":
      return 502;
  }
}
