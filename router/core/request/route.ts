/** Which paths exist. What is not listed here reaches no engine. */
import type { ErrorShape } from "../engine_error_shape.ts";
import type { StreamDialect } from "../usage_stream.ts";

/** A route whose requests go to an engine. */
export interface InferenceRoute {
  readonly kind: "inference";
  /** The word for metrics and records. */
  readonly name: RouteName;
  /** The path here and on the engine. */
  readonly path: string;
  /** What the engine gets of the query, with its "?"; nearly always nothing. */
  readonly query: string;
  /** How its requests come: as JSON, or as a form with a file. */
  readonly body: "json" | "form";
  /** How its streams speak; undefined when it does not stream. */
  readonly dialect: StreamDialect | undefined;
  readonly errors: ErrorShape;
  /** Its requests use tokens. */
  readonly metered: boolean;
}

export type RouteName =
  | "chat_completions"
  | "completions"
  | "embeddings"
  | "responses"
  | "messages"
  | "count_tokens"
  | "transcriptions"
  | "translations"
  | "rerank"
  | "score"
  | "tokenize"
  | "detokenize";

export type Route =
  | InferenceRoute
  | { readonly kind: "models" }
  /** `id` is decoded, once. */
  | { readonly kind: "model"; readonly id: string }
  /** What the holder of a key may know of it. */
  | { readonly kind: "own"; readonly what: OwnSubject }
  /** Operators change keys, and never here. */
  | { readonly kind: "keys" }
  | { readonly kind: "health" }
  | { readonly kind: "ready" };

export type OwnSubject = "usage" | "limits" | "key";

/** A refusal comes in the envelope that clients of its path read. */
export type RouteMatch =
  | { readonly kind: "route"; readonly route: Route }
  | {
    readonly kind: "method_not_allowed";
    readonly methods: readonly string[];
    readonly errors: ErrorShape;
  }
  | { readonly kind: "no_route"; readonly errors: ErrorShape };

const MODEL_PREFIX = "/v1/models/";
const MESSAGES = "/v1/messages";
const RESPONSES = "/v1/responses";
const KEYS = "/v1/keys";
const OWN_KEY = "/v1/keys/self";

/** Routes that count text without making any. */
const UNMETERED: ReadonlySet<RouteName> = new Set(["tokenize", "detokenize", "count_tokens"]);

const INFERENCE: readonly InferenceRoute[] = [
  inference("chat_completions", "/v1/chat/completions", "chat"),
  inference("completions", "/v1/completions", "completions"),
  inference("embeddings", "/v1/embeddings"),
  inference("responses", "/v1/responses", "responses"),
  inference("messages", "/v1/messages", "messages"),
  inference("count_tokens", "/v1/messages/count_tokens"),
  form("transcriptions", "/v1/audio/transcriptions"),
  form("translations", "/v1/audio/translations"),
  inference("rerank", "/v1/rerank"),
  inference("rerank", "/v2/rerank"),
  inference("rerank", "/rerank"),
  inference("score", "/v1/score"),
  inference("score", "/score"),
  inference("tokenize", "/tokenize"),
  inference("detokenize", "/detokenize"),
];

/** Matches a request line. `target` is as received: raw, with its query. */
export function matchRoute(method: string, target: string): RouteMatch {
  const path = pathOf(target);
  const inference = INFERENCE.find((route) => route.path === path);
  const errors = errorsAt(path);
  if (inference !== undefined) {
    const query = passedOn(path, target);
    const route = query === "" ? inference : { ...inference, query };
    return allowing(method, { methods: ["POST"], route, errors });
  }
  if (changesKeys(method, path)) return { kind: "route", route: { kind: "keys" } };
  const route = readingRoute(path);
  if (route === undefined) return { kind: "no_route", errors };
  return allowing(method, { methods: ["GET", "HEAD"], route, errors });
}

function readingRoute(path: string): Route | undefined {
  switch (path) {
    case "/v1/models":
      return { kind: "models" };
    case "/v1/usage":
      return { kind: "own", what: "usage" };
    case "/v1/limits":
      return { kind: "own", what: "limits" };
    case OWN_KEY:
      return { kind: "own", what: "key" };
    case "/health":
      return { kind: "health" };
    case "/ready":
      return { kind: "ready" };
  }
  if (!path.startsWith(MODEL_PREFIX)) return undefined;
  // The tail is taken as a whole: a model's name may hold slashes, encoded or not.
  const id = decodedOnce(path.slice(MODEL_PREFIX.length));
  return id === undefined || id === "" ? undefined : { kind: "model", id };
}

/** Whatever would look at other keys, or change any: who tries is told where that is done. */
function changesKeys(method: string, path: string): boolean {
  if (path !== OWN_KEY) return isUnder(KEYS, path);
  return !["GET", "HEAD", "OPTIONS"].includes(method);
}

interface Offer {
  readonly methods: readonly string[];
  readonly route: Route;
  readonly errors: ErrorShape;
}

function allowing(method: string, { methods, route, errors }: Offer): RouteMatch {
  return methods.includes(method)
    ? { kind: "route", route }
    : { kind: "method_not_allowed", methods, errors };
}

// A target may be in absolute form ("http://host/v1/models"), as proxies send it.
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "");
  return path === "" ? "/" : path;
}

/** Clients of the Messages API say in the query that they use a beta. Nothing else goes on. */
function passedOn(path: string, target: string): string {
  const beta = /[?&]beta=(true|false)(?:[&#]|$)/.exec(target)?.[1];
  return beta !== undefined && isUnder(MESSAGES, path) ? `?beta=${beta}` : "";
}

function errorsAt(path: string): ErrorShape {
  if (isUnder(MESSAGES, path)) return "anthropic";
  return isUnder(RESPONSES, path) ? "responses" : "openai";
}

function isUnder(parent: string, path: string): boolean {
  return path === parent || path.startsWith(`${parent}/`);
}

function decodedOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function inference(name: RouteName, path: string, dialect?: StreamDialect): InferenceRoute {
  return {
    kind: "inference",
    name,
    path,
    query: "",
    body: "json",
    dialect,
    errors: errorsAt(path),
    metered: !UNMETERED.has(name),
  };
}

function form(name: RouteName, path: string): InferenceRoute {
  return { ...inference(name, path, "events"), body: "form" };
}
