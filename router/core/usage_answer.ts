/** Judges a whole, non-streamed answer. */
import { type EngineError, readInBandError } from "./engine_error.ts";
import type { StreamDialect } from "./usage_stream.ts";
import { readUsage, type Usage } from "./usage.ts";

export type AnswerVerdict =
  /** `finished`: every choice has a finish reason; always true for routes without choices. */
  | { readonly kind: "ok"; readonly usage: Usage | undefined; readonly finished: boolean }
  | { readonly kind: "error"; readonly error: EngineError };

/** Reads the parsed body of a 2xx answer. Engines answer errors with 200, too. */
export function judgeAnswer(
  json: unknown,
  dialect: StreamDialect | "other",
  secrets: readonly string[] = [],
): AnswerVerdict {
  const failed = isObject(json) && json["status"] === "failed";
  const error = readInBandError(json, { named: failed && dialect === "responses", secrets });
  if (error !== undefined) return { kind: "error", error };
  return { kind: "ok", usage: readUsage(json), finished: isFinished(json, dialect) };
}

function isFinished(json: unknown, dialect: StreamDialect | "other"): boolean {
  if (!isObject(json)) return dialect === "other";
  switch (dialect) {
    case "chat":
    case "completions": {
      const choices = json["choices"];
      return Array.isArray(choices) && choices.length > 0 &&
        choices.every((choice) => isObject(choice) && typeof choice["finish_reason"] === "string");
    }
    case "responses":
      return json["status"] === "completed" || json["status"] === "incomplete";
    case "messages":
      return typeof json["stop_reason"] === "string";
    case "events":
    case "other":
      return true;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
