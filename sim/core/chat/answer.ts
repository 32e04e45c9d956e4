/** A chat completion as vLLM writes it: chunks of a stream, or one body. */
import type { EngineOutput } from "../engine/engine.ts";
import { type Choice, Choices, takeUnsent } from "../openai/choices.ts";
import type { AnswerHead, AnswerWriter } from "../openai/job.ts";
import { chatLogprobs, type PlacedToken } from "../openai/logprobs.ts";
import type { UsageOptions } from "../openai/sampling.ts";
import { UsageCount } from "../openai/usage.ts";
import type { ToolCall } from "./tools.ts";

export interface ChatAnswerOptions {
  readonly head: AnswerHead;
  readonly sequenceIds: readonly string[];
  readonly promptTokens: number;
  readonly usage: UsageOptions;
  /** The call that the answer's text is the arguments of. */
  readonly toolCall: ToolCall | undefined;
  /** Alternatives per token; undefined for no log probabilities. */
  readonly topLogprobs: number | undefined;
}

export class ChatAnswer implements AnswerWriter {
  readonly #options: ChatAnswerOptions;
  readonly #choices: Choices;
  readonly #usage: UsageCount;
  #started = false;

  constructor(options: ChatAnswerOptions) {
    this.#options = options;
    this.#choices = new Choices(options.sequenceIds);
    this.#usage = new UsageCount({
      promptTokens: options.promptTokens,
      details: options.usage.details,
    });
  }

  push(output: EngineOutput): object[] {
    const choice = this.#choices.push(output);
    this.#usage.add(output);
    const chunks: object[] = [];
    if (!this.#started) {
      // As in vLLM: with the first token, for all choices, so the headers come before it and alone.
      this.#started = true;
      chunks.push(...this.#choices.all.flatMap((one) => this.#heads(one)));
    }
    if (output.text !== "" || output.finish !== undefined) {
      chunks.push(this.#chunk(this.#delta(choice, output)));
    }
    return chunks;
  }

  closing(): object[] {
    if (!this.#options.usage.include) return [];
    return [{ ...this.#base(), choices: [], usage: this.#usage.streamed }];
  }

  whole(): object {
    const { head } = this.#options;
    return {
      id: head.id,
      object: "chat.completion",
      created: head.created,
      model: head.model,
      choices: this.#choices.all.map((choice) => this.#wholeChoice(choice)),
      service_tier: null,
      system_fingerprint: null,
      usage: this.#usage.value,
      prompt_logprobs: null,
      kv_transfer_params: null,
    };
  }

  #heads(choice: Choice): object[] {
    const { toolCall } = this.#options;
    const role = this.#plain(choice.index, { role: "assistant", content: "" });
    if (toolCall === undefined) return [role];
    const id = toolCallId(toolCall, choice.index);
    const call = {
      id,
      type: "function",
      index: 0,
      function: { name: toolCall.name, arguments: "" },
    };
    return [role, this.#plain(choice.index, { tool_calls: [call] })];
  }

  #plain(index: number, delta: object): object {
    return this.#chunk({ index, delta, logprobs: null, finish_reason: null });
  }

  #delta(choice: Choice, output: EngineOutput): object {
    const { toolCall } = this.#options;
    const fragment = { index: 0, function: { arguments: output.text } };
    const toolDelta = output.text === "" ? {} : { tool_calls: [fragment] };
    const delta = toolCall === undefined ? { content: output.text } : toolDelta;
    const base = {
      index: choice.index,
      delta,
      logprobs: this.#logprobs(takeUnsent(choice)),
      finish_reason: this.#finishReason(choice),
    };
    return output.finish === undefined
      ? base
      : { ...base, stop_reason: output.finish.stoppedBy ?? null };
  }

  #wholeChoice(choice: Choice): object {
    const { toolCall } = this.#options;
    const calls = toolCall === undefined ? [] : [{
      id: toolCallId(toolCall, choice.index),
      type: "function",
      function: { name: toolCall.name, arguments: choice.text },
    }];
    return {
      index: choice.index,
      message: {
        role: "assistant",
        content: toolCall === undefined ? choice.text : null,
        refusal: null,
        annotations: null,
        audio: null,
        function_call: null,
        tool_calls: calls,
        reasoning: null,
      },
      logprobs: this.#logprobs(choice.tokens),
      finish_reason: this.#finishReason(choice),
      stop_reason: choice.finish?.stoppedBy ?? null,
      token_ids: null,
    };
  }

  #finishReason(choice: Choice): string | null {
    if (choice.finish === undefined) return null;
    const calledTool = this.#options.toolCall !== undefined && choice.finish.reason === "stop";
    return calledTool ? "tool_calls" : choice.finish.reason;
  }

  #logprobs(tokens: readonly PlacedToken[]): object | null {
    const { topLogprobs } = this.#options;
    return topLogprobs === undefined ? null : chatLogprobs(tokens, topLogprobs);
  }

  #base(): object {
    const { head } = this.#options;
    return {
      id: head.id,
      object: "chat.completion.chunk",
      created: head.created,
      model: head.model,
    };
  }

  #chunk(choice: object): object {
    const chunk = { ...this.#base(), choices: [choice] };
    return this.#options.usage.continuous ? { ...chunk, usage: this.#usage.streamed } : chunk;
  }
}

/** Each choice has a call of its own, so each needs an id of its own. */
function toolCallId(toolCall: ToolCall, index: number): string {
  return index === 0 ? toolCall.id : `${toolCall.id}-${index}`;
}
