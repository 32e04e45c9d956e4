/** One streamed request, timed as its client sees it. */
import { z } from "zod";
import { networkWords } from "@heddle/proto/error";
import type { Answered } from "./measured.ts";
import type { BenchRequest } from "./shape.ts";

/** Where requests go, and how. */
export interface BenchTarget {
  /** Without /v1. */
  readonly base: string;
  readonly model: string;
  readonly key: string | undefined;
  /** Goes on to the length that was asked for. Not every server knows how. */
  readonly ignoreEos: boolean;
  /** The replica that must answer; undefined for any. */
  readonly replica: string | undefined;
}

const NOTHING = {
  ttftMs: undefined,
  tpotMs: undefined,
  durationMs: 0,
  completionTokens: 0,
  promptTokens: 0,
  cachedTokens: undefined,
} as const;

const chunkSchema = z.object({
  choices: z.array(z.object({
    delta: z.object({
      content: z.string().nullish(),
      reasoning_content: z.string().nullish(),
      reasoning: z.string().nullish(),
    }).nullish(),
    finish_reason: z.string().nullish(),
  })).nullish(),
  usage: z.object({
    prompt_tokens: z.number(),
    completion_tokens: z.number(),
    prompt_tokens_details: z.object({ cached_tokens: z.number().nullish() }).nullish(),
  }).nullish(),
  error: z.object({ message: z.string() }).nullish(),
});
type Chunk = z.output<typeof chunkSchema>;

/** Never rejects: what goes wrong is part of what is measured. */
export async function ask(
  target: BenchTarget,
  request: BenchRequest,
  signal: AbortSignal,
): Promise<Answered> {
  const startedAt = performance.now();
  try {
    const response = await fetch(`${target.base}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        // Another model's answers would be measured in its place.
        "x-heddle-no-fallback": "1",
        ...(target.replica === undefined ? {} : { "x-heddle-replica": target.replica }),
        ...(target.key === undefined ? {} : { authorization: `Bearer ${target.key}` }),
      },
      body: JSON.stringify({
        model: target.model,
        messages: request.messages,
        max_tokens: request.maxTokens,
        stream: true,
        stream_options: { include_usage: true },
        ...(target.ignoreEos ? { ignore_eos: true } : {}),
      }),
      signal,
    });
    if (!response.ok || response.body === null) {
      return { ...NOTHING, error: `${response.status} ${(await response.text()).slice(0, 200)}` };
    }
    const wrong = fromAnother(response.headers.get("x-heddle-replica"), target);
    if (wrong !== undefined) {
      await response.body.cancel();
      return { ...NOTHING, error: wrong };
    }
    return await timed(response.body, startedAt);
  } catch (error) {
    return { ...NOTHING, error: `${target.base}: ${networkWords(error)}` };
  }
}

/** Not said when a heartbeat began the stream before a replica did. */
function fromAnother(answered: string | null, { replica }: BenchTarget): string | undefined {
  if (replica === undefined || answered === null || answered === replica) return undefined;
  return `replica ${answered} answered, not ${replica}: the key may not choose one; ` +
    "heddle keys update KEY --may-explain lets it";
}

async function timed(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  startedAt: number,
): Promise<Answered> {
  let firstAt: number | undefined;
  let lastAt = startedAt;
  let pieces = 0;
  let finished = false;
  let usage: Chunk["usage"];
  for await (const data of events(body)) {
    if (data === "[DONE]") break;
    const chunk = chunkSchema.parse(JSON.parse(data));
    if (chunk.error) return { ...NOTHING, error: chunk.error.message };
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason } of chunk.choices ?? []) {
      finished ||= Boolean(finish_reason);
      if (!(delta?.content || delta?.reasoning_content || delta?.reasoning)) continue;
      lastAt = performance.now();
      firstAt ??= lastAt;
      pieces++;
    }
  }
  if (!finished) return { ...NOTHING, error: "the stream ended without a finish reason" };
  const tokens = usage?.completion_tokens ?? pieces;
  const spread = firstAt === undefined || tokens < 2
    ? undefined
    : (lastAt - firstAt) / (tokens - 1);
  return {
    ttftMs: firstAt === undefined ? undefined : firstAt - startedAt,
    tpotMs: spread,
    durationMs: performance.now() - startedAt,
    completionTokens: tokens,
    promptTokens: usage?.prompt_tokens ?? 0,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? undefined,
    error: undefined,
  };
}

/** The data of each event; events of one line, as every server of this API sends them. */
async function* events(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) yield line.slice("data:".length).trim();
    }
  }
}
