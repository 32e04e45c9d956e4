/** One sequence of tokens on its way through the engine: a prompt, and the answer as far as it has come. */
import type { Answer } from "../text/answer.ts";
import { BlockTable } from "./kv_cache.ts";
import { OutputText } from "../text/output_text.ts";

/** Why a sequence ended, in vLLM's words (`finished_reason`). */
export type FinishReason = "stop" | "length" | "abort" | "error";

/** What an engine is asked to do for one sequence. Ids are unique among those alive. */
export interface SequenceRequest {
  readonly id: string;
  readonly promptTokens: readonly number[];
  /** Nothing to generate for an embedding: it ends when its prompt is computed. */
  readonly answer: Answer | undefined;
  readonly tokensMax: number;
  readonly tokensMin: number;
  readonly ignoreEnd: boolean;
  readonly stop: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly includeStop: boolean;
  readonly cacheSalt: string;
}

/** Times in ms on the engine's clock. */
export interface SequenceTimes {
  readonly arrivedAt: number;
  scheduledAt?: number;
  firstTokenAt?: number;
  lastTokenAt?: number;
}

export class Sequence {
  readonly request: SequenceRequest;
  /** Prompt and answer. */
  readonly tokens: number[];
  readonly table: BlockTable;
  readonly output: OutputText;
  readonly times: SequenceTimes;
  /** How many of `tokens` are in the cache; the next step continues here. */
  computed = 0;
  /** Prompt tokens that the cache had at the first scheduling; undefined before it. */
  cachedPromptTokens: number | undefined;
  preemptions = 0;
  finished = false;

  constructor(request: SequenceRequest, arrivedAt: number) {
    this.request = request;
    this.tokens = [...request.promptTokens];
    this.table = new BlockTable(request.cacheSalt);
    this.output = new OutputText({ stop: request.stop, includeStop: request.includeStop });
    this.times = { arrivedAt };
  }

  get generated(): number {
    return this.tokens.length - this.request.promptTokens.length;
  }
}
