/** A Responses answer as vLLM writes it: numbered events, or one object. */
import type { ToolCall } from "../chat/tools.ts";
import type { EngineOutput } from "../engine/engine.ts";
import { Choices } from "../openai/choices.ts";
import type { AnswerHead, AnswerWriter } from "../openai/job.ts";
import { UsageCount } from "../openai/usage.ts";

export interface ResponsesAnswerOptions {
  readonly head: AnswerHead;
  readonly sequenceIds: readonly string[];
  readonly promptTokens: number;
  /** The call that the answer's text is the arguments of. */
  readonly toolCall: ToolCall | undefined;
}

export class ResponsesAnswer implements AnswerWriter {
  readonly #options: ResponsesAnswerOptions;
  readonly #choices: Choices;
  readonly #usage: UsageCount;
  #sequenceNumber = 0;
  #begun = false;

  constructor(options: ResponsesAnswerOptions) {
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
    const whole = this.whole();
    const item = this.#item("completed");
    const text = this.#text;
    const place = { output_index: 0, item_id: this.#itemId };
    const done = this.#options.toolCall === undefined
      ? [
        this.#event("response.output_text.done", { ...place, content_index: 0, text }),
        this.#event("response.content_part.done", {
          ...place,
          content_index: 0,
          part: textPart(text),
        }),
      ]
      : [
        this.#event("response.function_call_arguments.done", {
          ...place,
          name: this.#options.toolCall.name,
          arguments: text,
        }),
      ];
    return [
      ...done,
      this.#event("response.output_item.done", { output_index: 0, item }),
      this.#event(`response.${this.#status}`, { response: whole }),
    ];
  }

  whole(): object {
    const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details } =
      this.#usage.value;
    return {
      ...this.#response(this.#status),
      incomplete_details: this.#status === "incomplete" ? { reason: "max_output_tokens" } : null,
      output: [this.#item("completed")],
      usage: {
        input_tokens: prompt_tokens,
        input_tokens_details: { cached_tokens: prompt_tokens_details?.cached_tokens ?? 0 },
        output_tokens: completion_tokens,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens,
      },
    };
  }

  #opening(): object[] {
    const begun = { ...this.#response("in_progress"), output: [], usage: null };
    const events = [
      this.#event("response.created", { response: begun }),
      this.#event("response.in_progress", { response: begun }),
      this.#event("response.output_item.added", {
        output_index: 0,
        item: this.#item("in_progress"),
      }),
    ];
    if (this.#options.toolCall !== undefined) return events;
    return [
      ...events,
      this.#event("response.content_part.added", {
        output_index: 0,
        item_id: this.#itemId,
        content_index: 0,
        part: textPart(""),
      }),
    ];
  }

  #delta(delta: string): object {
    const place = { output_index: 0, item_id: this.#itemId };
    return this.#options.toolCall === undefined
      ? this.#event("response.output_text.delta", {
        ...place,
        content_index: 0,
        delta,
        logprobs: [],
      })
      : this.#event("response.function_call_arguments.delta", { ...place, delta });
  }

  /** The one item of the answer; empty while it is in progress. */
  #item(status: "in_progress" | "completed"): object {
    const { toolCall } = this.#options;
    const text = status === "completed" ? this.#text : "";
    if (toolCall !== undefined) {
      return {
        id: this.#itemId,
        type: "function_call",
        status,
        call_id: toolCall.id,
        name: toolCall.name,
        arguments: text,
      };
    }
    return {
      id: this.#itemId,
      type: "message",
      role: "assistant",
      status,
      content: status === "completed" ? [textPart(text)] : [],
    };
  }

  #response(status: string): object {
    const { head } = this.#options;
    return {
      id: head.id,
      object: "response",
      created_at: head.created,
      status,
      model: head.model,
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: null,
      parallel_tool_calls: true,
      temperature: 1,
      tool_choice: "auto",
      tools: [],
      top_p: 1,
      store: false,
    };
  }

  #event(type: string, fields: object): object {
    return { type, sequence_number: this.#sequenceNumber++, ...fields };
  }

  get #status(): "completed" | "incomplete" {
    const [choice] = this.#choices.all;
    return choice?.finish?.reason === "length" ? "incomplete" : "completed";
  }

  get #text(): string {
    return this.#choices.all[0]?.text ?? "";
  }

  get #itemId(): string {
    const kind = this.#options.toolCall === undefined ? "msg" : "fc";
    return `${kind}_${this.#options.head.id}`;
  }
}

function textPart(text: string): object {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}
