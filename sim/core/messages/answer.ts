/** An answer of the Messages API as vLLM writes it: its events, or one message. */
import type { ToolCall } from "../chat/tools.ts";
import type { EngineOutput } from "../engine/engine.ts";
import { Choices } from "../openai/choices.ts";
import type { AnswerHead, AnswerWriter } from "../openai/job.ts";
import { UsageCount } from "../openai/usage.ts";

export interface MessagesAnswerOptions {
  readonly head: AnswerHead;
  readonly sequenceIds: readonly string[];
  readonly promptTokens: number;
  /** The call that the answer's text is the input of. */
  readonly toolCall: ToolCall | undefined;
}

export class MessagesAnswer implements AnswerWriter {
  readonly #options: MessagesAnswerOptions;
  readonly #choices: Choices;
  readonly #usage: UsageCount;
  #begun = false;

  constructor(options: MessagesAnswerOptions) {
    this.#options = options;
    this.#choices = new Choices(options.sequenceIds);
    this.#usage = new UsageCount({ promptTokens: options.promptTokens, details: true });
  }

  push(output: EngineOutput): object[] {
    this.#choices.push(output);
    this.#usage.add(output);
    const events = this.#begun ? [] : this.#opening();
    this.#begun = true;
    if (output.text !== "") events.push(this.#delta(output.text));
    return events;
  }

  closing(): object[] {
    return [
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: this.#stopReason, stop_sequence: this.#stopSequence },
        usage: this.#tokens(),
      },
      { type: "message_stop" },
    ];
  }

  whole(): object {
    return {
      ...this.#message(),
      content: [this.#block(this.#text)],
      stop_reason: this.#stopReason,
      stop_sequence: this.#stopSequence,
      usage: this.#tokens(),
    };
  }

  #opening(): object[] {
    return [
      {
        type: "message_start",
        message: {
          ...this.#message(),
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: this.#options.promptTokens, output_tokens: 0 },
        },
      },
      { type: "content_block_start", index: 0, content_block: this.#block("") },
    ];
  }

  #delta(text: string): object {
    const delta = this.#options.toolCall === undefined
      ? { type: "text_delta", text }
      : { type: "input_json_delta", partial_json: text };
    return { type: "content_block_delta", index: 0, delta };
  }

  #block(text: string): object {
    const { toolCall } = this.#options;
    if (toolCall === undefined) return { type: "text", text };
    const input: unknown = text === "" ? {} : jsonOr(text);
    return { type: "tool_use", id: toolCall.id, name: toolCall.name, input };
  }

  #message(): object {
    const { head } = this.#options;
    return { id: head.id, type: "message", role: "assistant", model: head.model };
  }

  #tokens(): object {
    const { prompt_tokens, completion_tokens } = this.#usage.value;
    return { input_tokens: prompt_tokens, output_tokens: completion_tokens };
  }

  get #text(): string {
    return this.#choices.all[0]?.text ?? "";
  }

  get #stopReason(): string {
    const finish = this.#choices.all[0]?.finish;
    if (finish?.reason === "length") return "max_tokens";
    if (this.#stopSequence !== null) return "stop_sequence";
    return this.#options.toolCall === undefined ? "end_turn" : "tool_use";
  }

  get #stopSequence(): string | null {
    const by = this.#choices.all[0]?.finish?.stoppedBy;
    return typeof by === "string" ? by : null;
  }
}

/** Arguments that `max_tokens` cut short are no JSON. */
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
