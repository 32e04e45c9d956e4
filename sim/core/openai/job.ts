/** A request that was accepted: what the engine is to do, and how its outputs become an answer. */
import type { EngineOutput } from "../engine/engine.ts";
import type { SequenceRequest } from "../engine/sequence.ts";

export interface Job {
  /** As the client sees it. */
  readonly id: string;
  readonly sequences: readonly SequenceRequest[];
  readonly stream: boolean;
  readonly answer: AnswerWriter;
  /** For APIs whose events have a `type`, which is their name as well; `done`: vLLM ends them in [DONE]. */
  readonly typed?: { readonly done: boolean };
  /** A fault that the request asked for. */
  readonly fault: string | undefined;
}

/** Turns engine outputs into the events of a stream, or into one body. Gets each output exactly once. */
export interface AnswerWriter {
  /** Takes one output; returns the stream events that it causes (values to be sent as JSON). */
  push(output: EngineOutput): readonly object[];
  /** The events after the last output: usage, when it was asked for. */
  closing(): readonly object[];
  /** The body of an answer that is not streamed, once every sequence has ended: JSON, or plain text. */
  whole(): object | string;
}

/** When an answer was made and for whom: what each chunk repeats. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The model's name as the client asked for it. */
  readonly model: string;
}

/** What the server knows of a request before its body is read. */
export interface RequestHead {
  /** As the client sees it; clients may choose it, so it may repeat. */
  readonly id: string;
  /** Unique in this process. */
  readonly key: string;
  /** Unix seconds. */
  readonly created: number;
}
