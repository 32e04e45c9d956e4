/**
 * Reads what the router must know of a request and leaves the rest to the engine. The bytes stay
 * the client's: only members that belong to the router are changed, in `upstreamBody`.
 */
import { type JsonObject, memberOf, memberValue, scanObject } from "../json_scan.ts";
import type { EmbeddingEncoding } from "../embeddings.ts";
import { next, refuse, type Step } from "./outcome.ts";
import { estimatePromptTokens } from "./prompt_estimate.ts";
import type { InferenceRoute } from "./route.ts";
import { includeUsage, type MemberEdit, splice } from "../splice.ts";

export interface ParsedRequest {
  readonly route: InferenceRoute;
  /** The whole body, decompressed. */
  readonly bytes: Uint8Array;
  readonly object: JsonObject;
  /** As the client wrote it. */
  readonly model: string;
  readonly stream: boolean;
  /** The client wants the usage chunk itself. */
  readonly wantsUsage: boolean;
  /** How the vectors of an embeddings answer are to come. */
  readonly embeddingEncoding: EmbeddingEncoding;
  readonly promptTokensEstimate: number;
  /** What the router adds or takes out on the way to any engine. */
  readonly edits: readonly MemberEdit[];
}

/** More choices than anyone needs, and few enough that one request cannot fill an engine. */
const CHOICES_MAX = 128;

/**
 * Members that steer an engine rather than an answer: its queue, its caches, its parallel layout,
 * code it loads, or where a request goes. They are the router's to set, so a caller's are dropped.
 */
const ROUTERS_OWN: ReadonlySet<string> = new Set([
  "api_base",
  "api_key",
  "base_url",
  "bootstrap_host",
  "bootstrap_port",
  "bootstrap_room",
  "cache_salt",
  "custom_labels",
  "custom_logit_processor",
  "data_parallel_rank",
  "disagg_prefill_dp_rank",
  "extra_key",
  "kv_transfer_params",
  "logits_processors",
  "lora_path",
  "priority",
  "request_id",
  "return_hidden_states",
  "rid",
  "routed_dp_rank",
  "session_params",
]);

/** Reads a JSON body for `route`. */
export function parseRequest(route: InferenceRoute, bytes: Uint8Array): Step<ParsedRequest> {
  const object = scanObject(bytes);
  if (object.kind === "invalid") return invalid(object.detail);
  const read = (key: string): unknown => {
    const member = memberOf(object, key);
    return member === undefined ? undefined : memberValue(bytes, member);
  };
  const model = read("model");
  if (typeof model !== "string" || model === "") {
    return invalid('"model" must be the name of a model', "model");
  }
  const wrong = wrongMember(read);
  if (wrong !== undefined) return wrong;
  const stream = route.dialect !== undefined && read("stream") === true;
  const usage = stream ? includeUsage(bytes, object) : undefined;
  if (usage?.kind === "invalid") return invalid(usage.detail, "stream_options");
  return next({
    route,
    bytes,
    object,
    model,
    stream,
    wantsUsage: stream && usage === undefined,
    embeddingEncoding: read("encoding_format") === "base64" ? "base64" : "float",
    promptTokensEstimate: estimatePromptTokens(bytes),
    edits: [
      ...object.members.filter(({ key }) => ROUTERS_OWN.has(key))
        .map(({ key }) => ({ kind: "remove", key }) as const),
      ...(usage === undefined ? [] : [usage]),
    ],
  });
}

/** The body for an engine that knows the model as `servedName`. */
export function upstreamBody(request: ParsedRequest, servedName: string): Uint8Array {
  const edits = request.model === servedName
    ? request.edits
    : [...request.edits, { kind: "set", key: "model", json: JSON.stringify(servedName) } as const];
  return splice(request.bytes, request.object, edits);
}

function wrongMember(read: (key: string) => unknown): ReturnType<typeof invalid> | undefined {
  const stream = read("stream");
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    return invalid('"stream" must be true or false', "stream");
  }
  const choices = read("n");
  if (typeof choices === "number" && choices > CHOICES_MAX) {
    return invalid(`"n" must be at most ${CHOICES_MAX}`, "n");
  }
  return undefined;
}

function invalid(message: string, param?: string) {
  return refuse({
    reason: "invalid_request",
    message,
    ...(param === undefined ? {} : { param }),
  });
}
