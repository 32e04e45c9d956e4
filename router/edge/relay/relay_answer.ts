/** Relays an answer that is one whole document: nothing goes out before all of it is here. */
import { reencoded } from "../../core/embeddings.ts";
import { NO_WORK } from "../../core/request/attempt_usage.ts";
import type { ParsedRequest } from "../../core/request/request.ts";
import { judgeAnswer } from "../../core/usage_answer.ts";
import { failureOfEngine, failureOfGarbage, failureOfNoStream } from "./failure.ts";
import { readWhole } from "./read_whole.ts";
import type { Relayed } from "./relayed.ts";
import type { Reply, ReplyHeaders } from "../client/reply.ts";
import type { UpstreamResponse } from "../upstream.ts";

/** Room for two thousand embeddings of four thousand numbers; nothing sensible is larger. */
const ANSWER_BYTES_MAX = 256 * 2 ** 20;

export interface AnswerOptions {
  readonly request: ParsedRequest;
  readonly secrets: readonly string[];
  readonly headers: ReplyHeaders;
  readonly onContent: () => void;
}

/** Throws `UpstreamError` when the answer breaks off; then nothing has gone to the client. */
export async function relayAnswer(
  reply: Reply,
  answer: UpstreamResponse,
  options: AnswerOptions,
): Promise<Relayed> {
  const { bytes, whole } = await readWhole(answer, ANSWER_BYTES_MAX);
  if (!whole) return garbage("The engine's answer has no end");
  const json = parsed(bytes) ?? plainText(options);
  if (json === undefined) return garbage("The engine's answer is not JSON");
  const verdict = judgeAnswer(
    json.value,
    options.request.route.dialect ?? "other",
    options.secrets,
  );
  if (verdict.kind === "error") {
    return { kind: "failed", failure: failureOfEngine(verdict.error), work: NO_WORK };
  }
  const work = { usage: verdict.usage, contentEvents: 0, accepted: true };
  if (reply.gone.aborted) return { kind: "client_closed", work };
  if (!verdict.finished) {
    const failure = failureOfGarbage("The engine's answer is not complete");
    return { kind: "failed", failure, work };
  }
  // Clients of a stream find nothing in a document, and take that for an empty answer. After a
  // heartbeat none can follow either, not even where engines may do as they like.
  if (options.request.stream && options.request.route.body === "json" || reply.state !== "unsent") {
    return { kind: "failed", failure: failureOfNoStream(), work };
  }
  options.onContent();
  reply.whole(200, options.headers, bodyFor(options.request, json.value) ?? bytes);
  return { kind: "served", work };
}

/** The body when it must be another than the engine's. */
function bodyFor({ route, embeddingEncoding }: ParsedRequest, json: unknown): string | undefined {
  if (route.name !== "embeddings") return undefined;
  const changed = reencoded(json, embeddingEncoding);
  return changed === undefined ? undefined : JSON.stringify(changed);
}

/** Subtitles and bare words; of them there is nothing to be read. */
const PLAIN = /^(?:text\/(?:plain|vtt|srt|x-subrip)|application\/(?:x-subrip|octet-stream))\b/i;

function plainText({ request, headers }: AnswerOptions): { readonly value: undefined } | undefined {
  const plain = request.route.body === "form" && PLAIN.test(headers["content-type"] ?? "");
  return plain ? { value: undefined } : undefined;
}

function garbage(message: string): Relayed {
  return { kind: "failed", failure: failureOfGarbage(message), work: NO_WORK };
}

const utf8 = new TextDecoder();

function parsed(bytes: Uint8Array): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(utf8.decode(bytes)) };
  } catch {
    return undefined;
  }
}
