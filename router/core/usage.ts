/** Tokens that an engine says it used, whatever the route calls them. */

/** `cachedTokens` is a part of `promptTokens`, `reasoningTokens` a part of `completionTokens`. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Undefined: the engine does not say. */
  readonly cachedTokens?: number;
  readonly reasoningTokens?: number;
}

/**
 * The usage in a whole answer, a stream's event, or a usage object itself; undefined when there is
 * none. An explicit 0 is data. What is no count of tokens (negative, a fraction, text) is not read.
 */
export function readUsage(json: unknown): Usage | undefined {
  const fields = usageFields(json);
  return fields === undefined ? undefined : readCounts(fields);
}

/** A usage object as an engine wrote it. */
export type UsageFields = Readonly<Record<string, unknown>>;

/** The usage object that `json` is or holds, unread. */
export function usageFields(json: unknown): UsageFields | undefined {
  if (!isObject(json)) return undefined;
  // Responses events hold the answer inside; the first event of a Messages stream its message.
  for (const holder of [json, json["response"], json["message"]]) {
    if (isObject(holder) && isObject(holder["usage"])) return holder["usage"];
  }
  return json;
}

/** `later` over `earlier`: what the later one does not say stays as it was. */
export function mergeUsage(earlier: UsageFields, later: UsageFields): UsageFields {
  const said = Object.entries(later).filter(([, value]) => value !== null && value !== undefined);
  return { ...earlier, ...Object.fromEntries(said) };
}

function readCounts(usage: UsageFields): Usage | undefined {
  if ((count(usage["input_tokens"]) ?? count(usage["output_tokens"])) !== undefined) {
    return readInputOutput(usage);
  }
  const prompt = count(usage["prompt_tokens"]);
  const completion = count(usage["completion_tokens"]);
  const total = count(usage["total_tokens"]);
  if (prompt === undefined && completion === undefined && total === undefined) return undefined;
  // Rerankers and embedders say a total only, all of it prompt.
  const promptTokens = prompt ?? Math.max(0, (total ?? 0) - (completion ?? 0));
  return {
    promptTokens,
    completionTokens: completion ?? 0,
    ...details(usage, "prompt_tokens_details", "completion_tokens_details"),
  };
}

/** Responses and Messages. Only Messages counts cached tokens beside the input, not within. */
function readInputOutput(usage: UsageFields): Usage {
  const cacheRead = count(usage["cache_read_input_tokens"]);
  const cacheWrite = count(usage["cache_creation_input_tokens"]) ?? 0;
  return {
    promptTokens: (count(usage["input_tokens"]) ?? 0) + (cacheRead ?? 0) + cacheWrite,
    completionTokens: count(usage["output_tokens"]) ?? 0,
    ...(cacheRead === undefined ? {} : { cachedTokens: cacheRead }),
    ...details(usage, "input_tokens_details", "output_tokens_details"),
  };
}

function details(
  usage: UsageFields,
  promptKey: string,
  completionKey: string,
): { cachedTokens?: number; reasoningTokens?: number } {
  const prompt = usage[promptKey];
  const completion = usage[completionKey];
  const cached = isObject(prompt) ? count(prompt["cached_tokens"]) : undefined;
  // SGLang has said it beside the totals as well.
  const reasoning = isObject(completion)
    ? count(completion["reasoning_tokens"])
    : count(usage["reasoning_tokens"]);
  return {
    ...(cached === undefined ? {} : { cachedTokens: cached }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
  };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function isObject(value: unknown): value is UsageFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
