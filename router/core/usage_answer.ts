/** Judges a whole, non-streamed answer. */
import { type EngineError, readInBandError } from "./engine_error.ts";
import { endOf, type StreamDialect } from "./usage_stream.ts";
import { readUsage, type Usage } from "./usage.ts";

export type AnswerVerdict =
  /** `finished`: every choice has a finish reason. What has no choices is whole as it is. */
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
  // Of a transcription that is plain text there is nothing to be read.
  if (dialect === "events") return true;
  if (dialect === "other") return typeof json === "object" && json !== null;
  if (!isObject(json)) return false;
  switch (dialect) {
    case "chat":
    case "completions": {
      const choices = json["choices"];
      return Array.isArray(choices) && choices.length > 0 &&
        choices.every((choice) =>
          isObject(choice) && endOf(choice["finish_reason"]) === "finished"
        );
    }
    case "responses":
      return json["status"] === "completed" || json["status"] === "incomplete";
    case "messages":
      return typeof json["stop_reason"] === "string";
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
