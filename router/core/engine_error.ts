/** Turns every form of error that engines answer into one, and says whose fault it is. */
import type { LimitDetail } from "./limits/limit_detail.ts";
import { redactMessage } from "./engine_error_redact.ts";

/** An error as clients get it. `param` and `code` are null when there is nothing to say. */
export interface ApiError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  /** The limit of the caller's that it is about. */
  readonly limit?: LimitDetail;
}

/**
 * Who an engine's error speaks about. `request`: the client's request, no replica would take it.
 * `saturation`: the replica is full or still loading; another may have room. `replica`: this
 * replica failed. `router`: the router's own key or name of the model is wrong for this replica.
 * `route`: this replica has no such path, as one that only embeds has none for chat.
 */
export type Blame = "request" | "saturation" | "replica" | "router" | "route";

export interface EngineError {
  readonly error: ApiError;
  readonly blame: Blame;
}

export interface EngineAnswer {
  readonly status: number;
  readonly body: Uint8Array;
  /** Texts that must not reach a client: the engine's address, its key, its model path. */
  readonly secrets?: readonly string[];
}

/** Reads a non-2xx answer, or a 2xx one whose body is an error. Never throws. */
export function readEngineError({ status, body, secrets = [] }: EngineAnswer): EngineError {
  const text = utf8.decode(body);
  const said = wordsOf(parsed(text)) ?? plainWords(text);
  const error = status >= 200 && status < 300 ? statusOf(said) ?? 500 : status;
  return engineError(error, said, secrets);
}

/**
 * Reads the error that an event's parsed data carries; `named` when the event is called "error".
 * Undefined when the data is no error.
 */
export function readInBandError(
  data: unknown,
  options: { named?: boolean; secrets?: readonly string[] } = {},
): EngineError | undefined {
  const isError = options.named === true || isObject(data) && (
        present(data["error"]) || data["object"] === "error" || data["type"] === "error"
      );
  if (!isError) return undefined;
  const said = wordsOf(data) ?? {};
  return engineError(statusOf(said) ?? 500, said, options.secrets ?? []);
}

/** What an engine said, in its own words. */
interface Words {
  readonly message?: string;
  readonly type?: string;
  readonly param?: string;
  readonly code?: string;
}

const utf8 = new TextDecoder();

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** OpenAI's nested form, the flat one, FastAPI's `detail`, and bare strings in any of them. */
function wordsOf(json: unknown): Words | undefined {
  if (typeof json === "string") return { message: json };
  if (!isObject(json)) return undefined;
  const inner = json["error"] ?? nested(json["response"], "error");
  if (typeof inner === "string") return { ...fieldsOf(json), message: inner };
  if (isObject(inner)) return fieldsOf(inner);
  if (present(json["detail"])) return { ...fieldsOf(json), message: detailText(json["detail"]) };
  return fieldsOf(json);
}

function fieldsOf(json: Readonly<Record<string, unknown>>): Words {
  const message = json["message"] ?? json["msg"];
  const words: Record<string, string> = {};
  if (present(message)) words["message"] = textOf(message);
  for (const name of ["type", "param", "code"] as const) {
    const value = json[name];
    if (typeof value === "string" && value !== "") words[name] = value;
    if (typeof value === "number") words[name] = String(value);
  }
  // Some engines say the status under this name only.
  const status = json["status_code"] ?? json["status"];
  if (words["code"] === undefined && typeof status === "number") words["code"] = String(status);
  return words;
}

/** FastAPI's list of `{loc, msg}`, as one line. What the client sent is not repeated. */
function detailText(detail: unknown): string {
  if (!Array.isArray(detail)) {
    return isObject(detail) ? wordsOf(detail)?.message ?? textOf(detail) : textOf(detail);
  }
  return detail.map((item) => {
    if (!isObject(item)) return textOf(item);
    const where = Array.isArray(item["loc"]) ? `${item["loc"].map(String).join(".")}: ` : "";
    return where + textOf(item["msg"] ?? item["type"] ?? "invalid");
  }).join("; ");
}

/** A page or a line of text that is not JSON. Of a page only its heading is worth passing on. */
function plainWords(text: string): Words {
  const page = /<html|<!doctype|<body/i.test(text);
  const heading = /<(?:title|h1)[^>]*>([^<]{1,200})</i.exec(text)?.[1]?.trim();
  const message = page ? heading : text.trim();
  return message === undefined || message === "" ? {} : { message };
}

/** The status that an error names itself, where its own line of an answer said 200. */
function statusOf({ code, type, message }: Words): number | undefined {
  for (const text of [code, type]) {
    if (text !== undefined && /^[45][0-9]{2}$/.test(text)) return Number(text);
  }
  const word = `${type ?? ""} ${code ?? ""}`.toLowerCase().replaceAll(/[_\s]/g, "");
  if (/overload|unavailable|queuefull|capacity/.test(word)) return 503;
  if (/ratelimit|toomany/.test(word)) return 429;
  if (/badrequest|invalidrequest|contextlength|exceedcontext|validation/.test(word)) return 400;
  if (/authentication|unauthorized/.test(word)) return 401;
  if (/permission|forbidden/.test(word)) return 403;
  if (/notfound/.test(word)) return 404;
  if (/timeout/.test(word)) return 504;
  if (message !== undefined && CONTEXT.test(message)) return 400;
  return undefined;
}

const CONTEXT =
  /context (?:length|size|window)|context too long|maximum (?:input|prompt|sequence) length|longer than the (?:model|maximum)|exceed[a-z]* (?:the )?(?:available |maximum )?(?:context|model length|max_model_len)|prompt is too long|too many (?:input )?tokens/i;

function engineError(engineStatus: number, said: Words, secrets: readonly string[]): EngineError {
  const { status, blame } = verdictOn(engineStatus, said);
  const message = blame === "router"
    ? "The engine refused the router"
    : redactMessage(said.message ?? "", secrets);
  return {
    blame,
    error: {
      status,
      message: message === "" ? `The engine answered ${engineStatus}` : message,
      type: blame === "router" ? TYPES.server : typeOf(status),
      param: blame === "request" ? said.param ?? null : null,
      code: codeOf(status, blame, said),
    },
  };
}

/**
 * What an engine's status means to the caller. An engine that knows neither our key nor the model
 * that we asked it for is wrongly set up, and the caller can do nothing about it. One that has no
 * such path is not: any caller can ask for what a model cannot do, and must harm nobody by it.
 */
function verdictOn(status: number, said: Words): { status: number; blame: Blame } {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return { status: 502, blame: "router" };
    case 404:
      return knowsNoModel(said)
        ? { status: 502, blame: "router" }
        : { status: 400, blame: "route" };
    case 405:
    case 501:
      return { status: 400, blame: "route" };
    case 408:
      return { status: 504, blame: "replica" };
    case 425:
    case 429:
    case 503:
    case 529:
      return { status: 503, blame: "saturation" };
    case 500:
    case 502:
    case 504:
      return { status, blame: "replica" };
  }
  if (status >= 400 && status < 500) {
    return { status: CONTEXT.test(said.message ?? "") ? 400 : status, blame: "request" };
  }
  return { status: status >= 500 && status < 600 ? 500 : 502, blame: "replica" };
}

function knowsNoModel({ param, message, code }: Words): boolean {
  return param === "model" || code === "model_not_found" || /\bmodel\b/i.test(message ?? "");
}

/** The words that OpenAI uses. */
const TYPES = {
  request: "invalid_request_error",
  rate: "rate_limit_error",
  overloaded: "overloaded_error",
  timeout: "timeout_error",
  server: "server_error",
} as const;

function typeOf(status: number): string {
  if (status === 429) return TYPES.rate;
  if (status === 503) return TYPES.overloaded;
  if (status === 504) return TYPES.timeout;
  return status >= 500 ? TYPES.server : TYPES.request;
}

function codeOf(status: number, blame: Blame, said: Words): string | null {
  if (blame === "router") return "engine_rejects_router";
  if (blame === "route") return "route_unsupported";
  if (blame === "saturation") return "engine_overloaded";
  if (blame === "replica") return status === 504 ? "engine_timeout" : "engine_failed";
  if (`${said.type} ${said.code}`.includes("exceed_context") || CONTEXT.test(said.message ?? "")) {
    return "context_length_exceeded";
  }
  // A number is only the status once more.
  return said.code === undefined || /^[0-9]+$/.test(said.code) ? null : said.code;
}

function nested(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && value !== false;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
