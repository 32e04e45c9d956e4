/** Builders for tests of the engine, and a clock that costs no time. */
import { Answer } from "../text/answer.ts";
import { Engine, type EngineOptions, type EngineOutput } from "./engine.ts";
import type { SequenceRequest } from "./sequence.ts";

/** An engine with round numbers: 1 ms per prompt token, 10 ms per token alone, 1,000 tokens/s in total. */
export function engineCase(options: Partial<EngineOptions> = {}): Engine {
  return new Engine({
    modelName: "case",
    contextTokensMax: 4_096,
    sequencesMax: 256,
    stepTokensMax: 2_048,
    blockTokens: 16,
    blockCount: 4_096,
    prefixCaching: true,
    overheadMs: 0,
    speed: { prefillTokensPerS: 1_000, decodeTokensPerS: 100, decodeTokensPerSTotal: 1_000 },
    ...options,
  });
}

/** A prompt of `length` tokens that shares no block with one of another `salt`. */
export function promptCase(length: number, salt: number): number[] {
  return Array.from({ length }, (_, index) => 1_000 + salt * 100_000 + index);
}

/** A request for exactly `tokensMax` tokens. */
export function requestCase(
  id: string,
  options: Partial<SequenceRequest> & { readonly seed?: number } = {},
): SequenceRequest {
  const { seed = 1, ...request } = options;
  return {
    id,
    promptTokens: promptCase(32, seed),
    answer: new Answer({ seed, opening: "", naturalTokens: 50 }),
    tokensMax: 16,
    tokensMin: 0,
    ignoreEnd: true,
    stop: [],
    stopTokenIds: [],
    includeStop: false,
    cacheSalt: "",
    ...request,
  };
}

/** Advances the engine from event to event until it is idle, or `untilMs`. */
export function runEngine(engine: Engine, untilMs = Infinity): EngineOutput[] {
  const outputs: EngineOutput[] = [];
  for (;;) {
    const next = engine.nextEventAt();
    if (next === undefined || next > untilMs) return outputs;
    outputs.push(...engine.advance(next));
  }
}

/** When each sequence's first output came, by id. */
export function firstOutputs(outputs: readonly EngineOutput[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const output of outputs) {
    if (!first.has(output.id)) first.set(output.id, output.at);
  }
  return first;
}
