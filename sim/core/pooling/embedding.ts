/** An embedding request: texts in, unit vectors out, alike for texts that share tokens. */
import { z } from "zod";
import type { EngineOutput } from "../engine/engine.ts";
import type { SequenceRequest } from "../engine/sequence.ts";
import { hash32, randomFrom } from "../text/random.ts";
import { parseBody } from "../openai/body.ts";
import { promptSchema, promptsOf } from "../openai/completion.ts";
import type { AnswerHead, AnswerWriter, Job, RequestHead } from "../openai/job.ts";
import { resolveName, type ServedModel } from "../openai/model.ts";
import { RequestError } from "../openai/request_error.ts";

const embeddingSchema = z.looseObject({
  model: z.string().nullish(),
  input: promptSchema,
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().nullish(),
  sim_fault: z.string().nullish(),
});

/** Reads an embedding request. @throws RequestError for what vLLM would refuse. */
export function embeddingJob(
  model: ServedModel,
  text: string,
  head: RequestHead,
): Job {
  const body = parseBody(embeddingSchema, text);
  const name = resolveName(model, body.model);
  if (!model.embeds) throw new RequestError(400, "The model does not support Embeddings API");
  const dimensions = dimensionsOf(model, body.dimensions);
  const inputs = promptsOf(body.input);
  const sequences = inputs.map((tokens, index) =>
    inputSequence(model, `${head.key}-${index}`, tokens)
  );
  const base64 = body.encoding_format === "base64";
  const answer = new EmbeddingAnswer({
    head: { id: head.id, created: head.created, model: name },
    inputs,
    dimensions,
    base64,
  });
  return { id: head.id, sequences, stream: false, answer, fault: body.sim_fault ?? undefined };
}

/** A sequence that is only read. @throws RequestError 400 when it is empty or does not fit. */
export function inputSequence(
  model: ServedModel,
  id: string,
  promptTokens: readonly number[],
): SequenceRequest {
  checkInput(model, promptTokens);
  return {
    id,
    promptTokens,
    answer: undefined,
    tokensMax: 0,
    tokensMin: 0,
    ignoreEnd: false,
    stop: [],
    stopTokenIds: [],
    includeStop: false,
    cacheSalt: "",
  };
}

function dimensionsOf(model: ServedModel, asked: number | null | undefined): number {
  const most = model.embeddingDimensions;
  if (asked === null || asked === undefined) return most;
  if (asked >= 1 && asked <= most) return asked;
  throw new RequestError(
    400,
    `dimensions must be between 1 and ${most}, got ${asked}.`,
    "dimensions",
  );
}

function checkInput(model: ServedModel, tokens: readonly number[]): void {
  if (tokens.length === 0) {
    throw new RequestError(400, "The decoder prompt cannot be empty", "input");
  }
  const context = model.contextTokensMax;
  if (tokens.length <= context) return;
  throw new RequestError(
    400,
    `This model's maximum context length is ${context} tokens. However, you requested ` +
      `${tokens.length} tokens in the input for embedding generation. Please reduce the length ` +
      `of the input.`,
    "input_tokens",
  );
}

interface EmbeddingAnswerOptions {
  readonly head: AnswerHead;
  readonly inputs: readonly (readonly number[])[];
  readonly dimensions: number;
  readonly base64: boolean;
}

class EmbeddingAnswer implements AnswerWriter {
  readonly #options: EmbeddingAnswerOptions;

  constructor(options: EmbeddingAnswerOptions) {
    this.#options = options;
  }

  push(_output: EngineOutput): object[] {
    return [];
  }

  closing(): object[] {
    return [];
  }

  whole(): object {
    const { head, inputs, dimensions, base64 } = this.#options;
    const promptTokens = inputs.reduce((sum, tokens) => sum + tokens.length, 0);
    return {
      id: head.id,
      object: "list",
      created: head.created,
      model: head.model,
      data: inputs.map((tokens, index) => {
        const vector = embed(tokens, dimensions);
        return { index, object: "embedding", embedding: base64 ? toBase64(vector) : vector };
      }),
      usage: {
        prompt_tokens: promptTokens,
        total_tokens: promptTokens,
        completion_tokens: 0,
        prompt_tokens_details: null,
      },
    };
  }
}

/** The normalised sum of one pseudo-random direction per token, as 32-bit floats. */
export function embed(tokens: readonly number[], dimensions: number): number[] {
  const sum = new Array<number>(dimensions).fill(0);
  const counts = new Map<number, number>();
  for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
  for (const [token, count] of counts) {
    const random = randomFrom(hash32([token, 0x5eed]));
    for (let index = 0; index < dimensions; index += 1) {
      sum[index] = (sum[index] ?? 0) + (random() - 0.5) * count;
    }
  }
  const norm = Math.sqrt(sum.reduce((total, value) => total + value * value, 0)) || 1;
  return sum.map((value) => Math.fround(value / norm));
}

/** Little-endian 32-bit floats in base64. */
function toBase64(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [index, value] of vector.entries()) view.setFloat32(index * 4, value, true);
  return new Uint8Array(view.buffer).toBase64();
}
