/** Rerank and score requests: texts that share tokens are near. */
import { z } from "zod";
import type { SequenceRequest } from "../engine/sequence.ts";
import { encode } from "../text/tokenizer.ts";
import { parseBody } from "../openai/body.ts";
import { embed, inputSequence } from "./embedding.ts";
import type { AnswerWriter, Job, RequestHead } from "../openai/job.ts";
import { resolveName, type ServedModel } from "../openai/model.ts";
import { RequestError } from "../openai/request_error.ts";

const textOrPart = z.union([z.string(), z.looseObject({ text: z.string() })]);

const rerankSchema = z.looseObject({
  model: z.string().nullish(),
  query: z.string(),
  documents: z.array(textOrPart).min(1),
  top_n: z.int().nullish(),
  sim_fault: z.string().nullish(),
});

const texts = z.union([z.string(), z.array(z.string()).min(1)]);
const scoreSchema = z.looseObject({
  model: z.string().nullish(),
  text_1: texts.nullish(),
  text_2: texts.nullish(),
  queries: texts.nullish(),
  documents: texts.nullish(),
  sim_fault: z.string().nullish(),
});

/** Reads a rerank request. @throws RequestError for what vLLM would refuse. */
export function rerankJob(model: ServedModel, text: string, head: RequestHead): Job {
  const body = parseBody(rerankSchema, text);
  const documents = body.documents.map((one) => typeof one === "string" ? one : one.text);
  const pairs = documents.map((document) => [body.query, document] as const);
  return rankJob(model, { ...body, pairs }, head, ({ name, scores, usage }) => {
    const results = scores.map((score, index) => ({
      index,
      document: { text: documents[index] },
      relevance_score: score,
    })).sort((a, b) => b.relevance_score - a.relevance_score);
    const most = body.top_n ?? 0;
    return {
      id: head.id,
      model: name,
      usage,
      results: most > 0 ? results.slice(0, most) : results,
    };
  });
}

/** Reads a score request. @throws RequestError for what vLLM would refuse. */
export function scoreJob(model: ServedModel, text: string, head: RequestHead): Job {
  const body = parseBody(scoreSchema, text);
  const left = listOf(body.text_1 ?? body.queries);
  const right = listOf(body.text_2 ?? body.documents);
  if (left.length === 0 || right.length === 0) {
    throw new RequestError(400, "Either `text_1`, `text_2` or `queries`, `documents` are required");
  }
  if (left.length !== 1 && left.length !== right.length) {
    throw new RequestError(400, "Input lengths must be either 1:1, 1:N or N:N");
  }
  const pairs = right.map((one, index) => [left[index] ?? left[0] ?? "", one] as const);
  return rankJob(model, { ...body, pairs }, head, ({ name, scores, usage }) => ({
    id: head.id,
    object: "list",
    created: head.created,
    model: name,
    data: scores.map((score, index) => ({ index, object: "score", score })),
    usage,
  }));
}

interface Ranking {
  readonly model?: string | null | undefined;
  readonly sim_fault?: string | null | undefined;
  readonly pairs: readonly (readonly [string, string])[];
}

interface Ranked {
  readonly name: string;
  readonly scores: readonly number[];
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number };
}

function rankJob(
  model: ServedModel,
  { model: asked, pairs, sim_fault }: Ranking,
  head: RequestHead,
  write: (ranked: Ranked) => object,
): Job {
  const name = resolveName(model, asked);
  if (!model.embeds) throw new RequestError(400, "The model does not support Score API");
  const encoded = pairs.map(([a, b]) => [encode(a), encode(b)] as const);
  const sequences = encoded.map(([a, b], index): SequenceRequest =>
    inputSequence(model, `${head.key}-${index}`, [...a, ...b])
  );
  const tokens = sequences.reduce((sum, { promptTokens }) => sum + promptTokens.length, 0);
  const answer: AnswerWriter = {
    push: () => [],
    closing: () => [],
    whole: () =>
      write({
        name,
        scores: encoded.map(([a, b]) => nearness(model, a, b)),
        usage: { prompt_tokens: tokens, total_tokens: tokens },
      }),
  };
  return { id: head.id, sequences, stream: false, answer, fault: sim_fault ?? undefined };
}

/** Cosine of the two texts' vectors, within [0,1]. */
function nearness(model: ServedModel, a: readonly number[], b: readonly number[]): number {
  const other = embed(b, model.embeddingDimensions);
  const dot = embed(a, model.embeddingDimensions)
    .reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
  return Math.min(Math.max((dot + 1) / 2, 0), 1);
}

function listOf(value: string | string[] | null | undefined): readonly string[] {
  if (value === null || value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
