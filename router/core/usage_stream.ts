/** Reads a stream's events as they pass: what each one is, whether the stream is whole, its usage. */
import { type EngineError, readInBandError } from "./engine_error.ts";
import type { ResponseSoFar } from "./engine_error_shape.ts";
import type { SseEvent } from "./sse_event.ts";
import { mergeUsage, readUsage, type Usage, type UsageFields, usageFields } from "./usage.ts";

/** How a route's stream speaks. `events`: typed events without more (transcriptions). */
export type StreamDialect = "chat" | "completions" | "responses" | "messages" | "events";

/**
 * What an event is to the relay.
 * - `silent`: drop; see `SseEvent.isSilent`. Also data that is no part of the dialect (a ping in
 *   JSON), on which clients throw.
 * - `prelude`: role or lifecycle, no content yet. Forward, but it does not hold the status line
 *   open: a failure may still be answered by another replica.
 * - `content`: something a user reads. No retry from here on.
 * - `finish`: ends a choice or the answer; counts as content.
 * - `usage`: usage and nothing else; drop unless the client asked.
 * - `error`: in `error`.
 * - `done`: `[DONE]`, or the dialect's own last event after `finish`.
 * - `malformed`: data that is not JSON, or not an object.
 */
export type Verdict =
  | { readonly kind: "silent" | "prelude" | "content" | "finish" | "usage" | "done" | "malformed" }
  | { readonly kind: "error"; readonly error: EngineError };

export interface StreamMeter {
  /** Judges the next event, once each, in order. */
  observe(event: SseEvent): Verdict;
  /** The last usage seen; usage in a stream is cumulative, so the last one counts. */
  readonly usage: Usage | undefined;
  /** Every choice that began has a finish reason (or the dialect's terminal event came). */
  readonly finished: boolean;
  /** Choices that began, of routes that have any. */
  readonly choices: number;
  /** Content events so far: a lower bound of the generated tokens when no usage came. */
  readonly contentEvents: number;
  /** What a Responses stream has told of its answer, for the event that must end it. */
  readonly response: ResponseSoFar | undefined;
}

/** A meter for one stream. `secrets` are kept out of the errors it returns. */
export function createStreamMeter(
  dialect: StreamDialect,
  secrets: readonly string[] = [],
): StreamMeter {
  return new Meter(dialect, secrets);
}

type Json = Readonly<Record<string, unknown>>;

/** Finish reasons with which engines tell that they did not finish. */
const FAILED: ReadonlySet<string> = new Set(["error", "abort"]);

/** What a finish reason says of its choice. Some engines give it as an object of that type. */
export function endOf(reason: unknown): "open" | "finished" | "failed" {
  const word = isObject(reason) ? reason["type"] : reason;
  if (typeof word !== "string" || word === "") return "open";
  return FAILED.has(word) ? "failed" : "finished";
}

class Meter implements StreamMeter {
  readonly #dialect: StreamDialect;
  readonly #secrets: readonly string[];
  /** Choices by index that have begun and not finished. */
  readonly #open = new Set<unknown>();
  readonly #begun = new Set<unknown>();
  #finished = false;
  #contentEvents = 0;
  #usage: UsageFields = {};
  #response: ResponseSoFar | undefined;

  constructor(dialect: StreamDialect, secrets: readonly string[]) {
    this.#dialect = dialect;
    this.#secrets = secrets;
  }

  get usage(): Usage | undefined {
    return readUsage({ usage: this.#usage });
  }

  get finished(): boolean {
    return this.#finished && this.#open.size === 0;
  }

  get choices(): number {
    return this.#begun.size;
  }

  get contentEvents(): number {
    return this.#contentEvents;
  }

  get response(): ResponseSoFar | undefined {
    return this.#response;
  }

  observe(event: SseEvent): Verdict {
    const { data, name } = event;
    if (event.isSilent || data === undefined) return { kind: "silent" };
    if (event.isDone) return { kind: "done" };
    const json = parsed(data);
    const failed = readInBandError(json ?? data, {
      named: name === "error",
      secrets: this.#secrets,
    });
    if (failed !== undefined) return { kind: "error", error: failed };
    if (!isObject(json)) return { kind: "malformed" };
    return this.#judge(json, name);
  }

  #judge(json: Json, name: string): Verdict {
    const type = typeof json["type"] === "string" ? json["type"] : name;
    switch (this.#dialect) {
      case "chat":
      case "completions":
        return this.#chunk(json);
      case "responses":
        return this.#responsesEvent(json, type);
      case "messages":
        return this.#messagesEvent(json, type);
      case "events":
        return Array.isArray(json["choices"]) ? this.#chunk(json) : this.#typedEvent(json, type);
    }
  }

  #chunk(json: Json): Verdict {
    const usage = isObject(json["usage"]);
    if (usage) this.#readUsage(json);
    const choices = json["choices"];
    if (!Array.isArray(choices) || choices.length === 0) {
      if (usage) return { kind: "usage" };
      return { kind: Array.isArray(choices) ? "prelude" : "silent" };
    }
    let finishes = false;
    let says = false;
    for (const choice of choices) {
      if (!isObject(choice)) return { kind: "malformed" };
      const end = endOf(choice["finish_reason"]);
      if (end === "failed") return this.#failed("the engine gave up");
      says ||= saysSomething(choice);
      const index = choice["index"] ?? 0;
      this.#begun.add(index);
      if (end === "open") {
        this.#open.add(index);
        continue;
      }
      this.#open.delete(index);
      finishes = true;
    }
    if (says) this.#contentEvents++;
    this.#finished ||= finishes;
    return { kind: finishes ? "finish" : says ? "content" : "prelude" };
  }

  #content(): Verdict {
    this.#contentEvents++;
    return { kind: "content" };
  }

  #responsesEvent(json: Json, type: string): Verdict {
    this.#readResponse(json);
    switch (type) {
      case "response.completed":
      case "response.incomplete":
        this.#readUsage(json);
        this.#finished = true;
        return { kind: "finish" };
      case "response.failed":
        this.#readUsage(json);
        return this.#error(json);
      // Not among the three events that may end a stream: clients would wait for one of these, or,
      // given one besides, see two ends.
      case "response.cancelled":
        this.#readUsage(json);
        return this.#failed("the engine called its answer off");
    }
    return type.endsWith(".delta") ? this.#content() : { kind: "prelude" };
  }

  #messagesEvent(json: Json, type: string): Verdict {
    switch (type) {
      case "message_start":
        this.#readUsage(json);
        return { kind: "prelude" };
      case "content_block_delta":
        return this.#content();
      case "message_delta": {
        this.#readUsage(json);
        const delta = json["delta"];
        if (!isObject(delta) || !filled(delta["stop_reason"])) return { kind: "prelude" };
        this.#finished = true;
        return { kind: "finish" };
      }
      case "message_stop":
        return { kind: "done" };
    }
    return { kind: "prelude" };
  }

  #typedEvent(json: Json, type: string): Verdict {
    if (isObject(json["usage"])) this.#readUsage(json);
    if (type.endsWith(".delta")) return this.#content();
    if (!type.endsWith(".done")) return { kind: "prelude" };
    this.#finished = true;
    return { kind: "finish" };
  }

  #readUsage(json: Json): void {
    this.#usage = mergeUsage(this.#usage, usageFields(json) ?? {});
  }

  #readResponse(json: Json): void {
    const sequence = json["sequence_number"];
    const response = json["response"];
    const last = typeof sequence === "number" ? sequence : this.#response?.sequenceNumber ?? 0;
    const before = this.#response;
    if (!isObject(response)) {
      if (before !== undefined) this.#response = { ...before, sequenceNumber: last + 1 };
      return;
    }
    this.#response = {
      id: textOr(response["id"], before?.id ?? ""),
      model: textOr(response["model"], before?.model ?? ""),
      createdAt: typeof response["created_at"] === "number"
        ? response["created_at"]
        : before?.createdAt ?? 0,
      sequenceNumber: last + 1,
    };
  }

  #failed(message: string): Verdict {
    return this.#error({ error: { message, code: 500 } });
  }

  #error(json: Json): Verdict {
    const error = readInBandError(json, { named: true, secrets: this.#secrets });
    return error === undefined ? { kind: "malformed" } : { kind: "error", error };
  }
}

/** Whether a choice of a chunk holds anything that a user could be shown. */
function saysSomething(choice: Json): boolean {
  if (filled(choice["text"])) return true;
  for (const part of [choice["delta"], choice["message"]]) {
    if (!isObject(part)) continue;
    for (const [name, value] of Object.entries(part)) {
      if (name !== "role" && filled(value)) return true;
    }
  }
  return false;
}

function filled(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== "";
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
