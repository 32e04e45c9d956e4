/** A transcription or translation request: a file of sound in, invented words out. */
import { z } from "zod";
import type { EngineOutput } from "../engine/engine.ts";
import { Choices } from "../openai/choices.ts";
import type { AnswerHead, AnswerWriter, Job, RequestHead } from "../openai/job.ts";
import { resolveName, type ServedModel } from "../openai/model.ts";
import { RequestError } from "../openai/request_error.ts";
import { sequenceOf, tokensMax } from "../openai/sampling.ts";
import { UsageCount } from "../openai/usage.ts";
import { hash32 } from "../text/random.ts";
import { encode } from "../text/tokenizer.ts";

/** Sound of 16 kHz, 16 bits, one channel. */
const BYTES_PER_SECOND = 32_000;
/** What Whisper makes of a second. */
const TOKENS_PER_SECOND = 50;
const OPENING = " This is a simulated engine, which heard nothing.";

const fieldsSchema = z.looseObject({
  model: z.string().optional(),
  response_format: z.enum(["json", "text", "verbose_json"]).default("json"),
  stream: z.enum(["true", "false", "True", "False", "1", "0"]).default("false"),
  stream_include_usage: z.string().optional(),
  prompt: z.string().default(""),
  sim_fault: z.string().optional(),
});
type Fields = z.infer<typeof fieldsSchema>;

/** A form as it was sent. */
export interface TranscriptionForm {
  readonly fields: Readonly<Record<string, string>>;
  /** The file; undefined when there is none. */
  readonly file: Uint8Array | undefined;
}

/** Reads a transcription request. @throws RequestError for what vLLM would refuse. */
export function transcriptionJob(
  model: ServedModel,
  form: TranscriptionForm,
  head: RequestHead,
): Job {
  const read = fieldsSchema.safeParse(form.fields);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new RequestError(400, issue?.message ?? "invalid", String(issue?.path[0]));
  }
  const name = resolveName(model, read.data.model);
  if (!model.generates) {
    throw new RequestError(400, "The model does not support Transcriptions API");
  }
  const { file } = form;
  if (file === undefined) throw new RequestError(400, "Field required: file", "file");
  if (file.length === 0) throw new RequestError(400, "Invalid or unsupported audio file.", "file");
  const seconds = file.length / BYTES_PER_SECOND;
  const promptTokens = promptOf(file, seconds, read.data.prompt);
  const sequence = sequenceOf(model, {}, {
    id: head.key,
    promptTokens,
    opening: OPENING,
    exact: false,
    tokensMax: tokensMax(model, promptTokens.length, undefined),
    choice: 0,
  });
  return {
    id: head.id,
    sequences: [sequence],
    stream: ["true", "True", "1"].includes(read.data.stream),
    answer: new TranscriptionAnswer({
      head: { id: head.id, created: head.created, model: name },
      sequenceId: sequence.id,
      promptTokens: promptTokens.length,
      seconds,
      fields: read.data,
    }),
    fault: read.data.sim_fault,
  };
}

/** The same sound gives the same words. */
function promptOf(file: Uint8Array, seconds: number, prompt: string): readonly number[] {
  const heard = hash32([...file.subarray(0, 4_096)]) % 1_000;
  const length = Math.max(1, Math.ceil(seconds * TOKENS_PER_SECOND));
  return [...encode(prompt), ...new Array<number>(length).fill(heard)];
}

interface TranscriptionAnswerOptions {
  readonly head: AnswerHead;
  readonly sequenceId: string;
  readonly promptTokens: number;
  readonly seconds: number;
  readonly fields: Fields;
}

class TranscriptionAnswer implements AnswerWriter {
  readonly #options: TranscriptionAnswerOptions;
  readonly #choices: Choices;
  readonly #usage: UsageCount;

  constructor(options: TranscriptionAnswerOptions) {
    this.#options = options;
    this.#choices = new Choices([options.sequenceId]);
    this.#usage = new UsageCount({ promptTokens: options.promptTokens, details: false });
  }

  push(output: EngineOutput): object[] {
    const choice = this.#choices.push(output);
    this.#usage.add(output);
    if (output.text === "" && output.finish === undefined) return [];
    const finish = choice.finish?.reason ?? null;
    return [this.#chunk([{ delta: { content: output.text }, finish_reason: finish }])];
  }

  closing(): object[] {
    if (this.#options.fields.stream_include_usage !== "true") return [];
    return [{ ...this.#chunk([]), usage: this.#usage.streamed }];
  }

  whole(): object | string {
    const { fields, seconds } = this.#options;
    const text = (this.#choices.all[0]?.text ?? "").trim();
    const usage = { type: "duration", seconds: Math.ceil(seconds) };
    switch (fields.response_format) {
      case "text":
        return text;
      case "json":
        return { text, usage };
      case "verbose_json":
        return { duration: String(seconds), language: "en", text, words: null, segments: null };
    }
  }

  #chunk(choices: readonly object[]): object {
    const { head } = this.#options;
    return {
      id: head.id,
      object: "transcription.chunk",
      created: head.created,
      model: head.model,
      choices,
    };
  }
}
