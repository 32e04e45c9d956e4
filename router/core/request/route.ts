/** Which paths exist. What is not listed here reaches no engine. */
import type { ErrorShape } from "../engine_error_shape.ts";
import type { StreamDialect } from "../usage_stream.ts";

/** A route whose requests go to an engine. */
export interface InferenceRoute {
  readonly kind: "inference";
  /** The word for metrics and records. */
  readonly name: "chat_completions" | "completions" | "embeddings" | "tokenize";
  /** The path here and on the engine. */
  readonly path: string;
  /** How its streams speak; undefined when it does not stream. */
  readonly dialect: StreamDialect | undefined;
  readonly errors: ErrorShape;
  /** Its requests use tokens. */
  readonly metered: boolean;
}

export type Route =
  | InferenceRoute
  | { readonly kind: "models" }
  /** `id` is decoded, once. */
  | { readonly kind: "model"; readonly id: string }
  | { readonly kind: "health" }
  | { readonly kind: "ready" };

export type RouteMatch =
  | { readonly kind: "route"; readonly route: Route }
  | { readonly kind: "method_not_allowed"; readonly allow: string }
  | { readonly kind: "no_route" };

const INFERENCE: readonly InferenceRoute[] = [
  inference("chat_completions", "/v1/chat/completions", "chat"),
  inference("completions", "/v1/completions", "completions"),
  inference("embeddings", "/v1/embeddings", undefined),
  inference("tokenize", "/tokenize", undefined),
];

const MODEL_PREFIX = "/v1/models/";

/** Matches a request line. `target` is as received: raw, with its query. */
export function matchRoute(method: string, target: string): RouteMatch {
  const path = pathOf(target);
  const inference = INFERENCE.find((route) => route.path === path);
  if (inference !== undefined) return allowing(method, ["POST"], inference);
  const route = readingRoute(path);
  return route === undefined ? { kind: "no_route" } : allowing(method, ["GET", "HEAD"], route);
}

function readingRoute(path: string): Route | undefined {
  switch (path) {
    case "/v1/models":
      return { kind: "models" };
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

function allowing(method: string, methods: readonly string[], route: Route): RouteMatch {
  return methods.includes(method)
    ? { kind: "route", route }
    : { kind: "method_not_allowed", allow: methods.join(", ") };
}

// A target may be in absolute form ("http://host/v1/models"), as proxies send it.
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "");
  return path === "" ? "/" : path;
}

function decodedOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function inference(
  name: InferenceRoute["name"],
  path: string,
  dialect: StreamDialect | undefined,
): InferenceRoute {
  return { kind: "inference", name, path, dialect, errors: "openai", metered: name !== "tokenize" };
}
