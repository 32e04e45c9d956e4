/** Tokens that an engine says it used, whatever the route calls them. */

/** `cachedTokens` is a part of `promptTokens`, `reasoningTokens` a part of `completionTokens`. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Undefined: the engine does not say. */
  readonly cachedTokens?: number;
  readonly reasoningTokens?: number;
}

/** The usage in a whole answer, a stream's event, or a usage object itself. An explicit 0 is data. */
export function readUsage(_json: unknown): Usage | undefined {
  throw new Error("not built yet");
}
