/**
 * Reads what the router must know of a request and leaves the rest to the engine. The bytes stay
 * the client's: only members that belong to the router are changed, in `upstreamBody`.
 */
import { type Conversation, conversationOf } from "../affinity/conversation.ts";
import { readJsonBody } from "./json_body.ts";
import type { EmbeddingEncoding } from "../embeddings.ts";
import { type ControlFieldPolicy, isControlField } from "../policy/control_fields.ts";
import { type MediaUrlPolicy, refusedMedia } from "../policy/media_urls.ts";
import { next, refuse, type Step } from "./outcome.ts";
import { estimatePromptTokens } from "./prompt_estimate.ts";
import { needsState } from "../policy/responses_state.ts";
import type { InferenceRoute } from "./route.ts";
import { includeUsage, type MemberEdit, splice } from "../splice.ts";

export interface ParsedRequest {
  readonly route: InferenceRoute;
  /** As the client wrote it. */
  readonly model: string;
  readonly stream: boolean;
  /** The client wants the usage chunk itself. */
  readonly wantsUsage: boolean;
  /** How the vectors of an embeddings answer are to come. */
  readonly embeddingEncoding: EmbeddingEncoding;
  readonly promptTokensEstimate: number;
  /** How many answers it asks for. */
  readonly choices: number;
  /** Most tokens that all its answers together may have; undefined when it does not say. */
  readonly answerTokensMax: number | undefined;
  /** Its prompt as chat templates begin it, for prefix caches; undefined where none helps. */
  readonly conversation: () => Prompt | undefined;
  /** What every answer to it says in its headers. */
  readonly answerHeaders: Readonly<Record<string, string>>;
  readonly contentType: string;
  /** The body, in order, for an engine that knows the model as `servedName`. */
  readonly body: (servedName: string) => readonly BodyPiece[];
}

/** Bytes, or a range of what was received and lies elsewhere. */
export type BodyPiece = Uint8Array | { readonly start: number; readonly end: number };

/** A prompt, and the contents of data: URLs that its text names by number. */
export interface Prompt extends Conversation {
  readonly data: readonly string[];
}

/** More choices than anyone needs, and few enough that one request cannot fill an engine. */
const CHOICES_MAX = 128;

/** What an operator decides about requests. */
export interface RequestPolicy {
  readonly controlFields: ControlFieldPolicy;
  readonly mediaUrls: MediaUrlPolicy;
}

/** Reads a JSON body for `route`. */
export function parseRequest(
  route: InferenceRoute,
  bytes: Uint8Array,
  policy: RequestPolicy,
): Step<ParsedRequest> {
  const body = readJsonBody(bytes);
  if (body.kind === "invalid") return invalid(body.detail);
  const { object } = body;
  const read = (key: string): unknown =>
    Object.hasOwn(body.value, key) ? body.value[key] : undefined;
  const model = read("model");
  if (typeof model !== "string" || model === "") {
    return invalid('"model" must be the name of a model', "model");
  }
  const wrong = wrongMember(read) ?? (route.name === "responses" ? needsState(read) : undefined);
  if (wrong !== undefined) return wrong;
  const media = refusedMedia(body, policy.mediaUrls);
  if (media !== undefined) return invalid(media.message, media.param);
  const control = object.members.map(({ key }) => key).filter(isControlField);
  const [first] = control;
  if (first !== undefined && policy.controlFields === "refuse") {
    return invalid(`"${first}" is not for callers to set`, first);
  }
  const stream = route.dialect !== undefined && read("stream") === true;
  const usage = stream && saysUsageWhenAsked(route) ? includeUsage(bytes, object) : undefined;
  if (usage?.kind === "invalid") return invalid(usage.detail, "stream_options");
  const edits: readonly MemberEdit[] = [
    ...control.map((key) => ({ kind: "remove", key }) as const),
    ...(usage === undefined ? [] : [usage]),
    ...(route.name === "responses" ? [NOT_STORED] : []),
  ];
  return next({
    route,
    model,
    stream,
    wantsUsage: stream && usage === undefined,
    embeddingEncoding: read("encoding_format") === "base64" ? "base64" : "float",
    promptTokensEstimate: estimatePromptTokens(body),
    choices: choicesOf(route, read),
    answerTokensMax: answerTokensMax(read),
    conversation: () => {
      const conversation = conversationOf(route.name, read);
      return conversation && { ...conversation, data: body.data };
    },
    answerHeaders: {
      ...(control.length === 0 ? {} : { "x-heddle-dropped": control.join(", ") }),
      ...(route.name === "responses" ? { "x-heddle-store": "false" } : {}),
    },
    contentType: "application/json",
    body: (servedName) => [
      splice(
        bytes,
        object,
        model === servedName
          ? edits
          : [...edits, { kind: "set", key: "model", json: JSON.stringify(servedName) }],
      ),
    ],
  });
}

/** What bounds an answer, by the names that the routes have for it. */
const ANSWER_BOUNDS = ["max_completion_tokens", "max_tokens", "max_output_tokens"] as const;

function answerTokensMax(read: (key: string) => unknown): number | undefined {
  const bounds = ANSWER_BOUNDS.map(read).filter((bound) => isCount(bound));
  if (bounds.length === 0) return undefined;
  const choices = read("n");
  return Math.min(...bounds) * (isCount(choices) ? Math.max(1, choices) : 1);
}

/** Completions answer each prompt of a list. */
function choicesOf({ dialect }: InferenceRoute, read: (key: string) => unknown): number {
  if (dialect !== "chat" && dialect !== "completions") return 0;
  const [asked, prompt] = [read("n"), read("prompt")];
  const each = isCount(asked) ? Math.max(1, asked) : 1;
  const isList = dialect === "completions" && Array.isArray(prompt) &&
    typeof prompt[0] !== "number";
  return isList ? each * Math.max(1, prompt.length) : each;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** An engine that stores keeps every answer in its memory, and no later request would find it. */
const NOT_STORED = { kind: "set", key: "store", json: "false" } as const;

/** Responses and Messages say their usage unasked, and have no option for it. */
function saysUsageWhenAsked({ dialect }: InferenceRoute): boolean {
  return dialect === "chat" || dialect === "completions";
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
