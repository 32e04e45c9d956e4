/** Judges a whole, non-streamed answer. */
import type { EngineError } from "./engine_error.ts";
import type { StreamDialect } from "./usage_stream.ts";
import type { Usage } from "./usage.ts";

export type AnswerVerdict =
  /** `finished`: every choice has a finish reason; always true for routes without choices. */
  | { readonly kind: "ok"; readonly usage: Usage | undefined; readonly finished: boolean }
  | { readonly kind: "error"; readonly error: EngineError };

/** Reads the parsed body of a 2xx answer. */
export function judgeAnswer(
  _json: unknown,
  _dialect: StreamDialect | "other",
  _secrets: readonly string[] = [],
): AnswerVerdict {
  throw new Error("not built yet");
}
