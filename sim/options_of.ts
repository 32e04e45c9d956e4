/** What of the configuration each part of the engine needs, in the part's own words. */
import { blockCount, decodeTotal, type SimConfig, stepTokensMax } from "./config.ts";
import type { EngineOptions } from "./core/engine/engine.ts";
import type { ServedModel } from "./core/openai/model.ts";

/** The model as the API part sees it. */
export function modelOf(config: SimConfig): ServedModel {
  const [first, ...others] = config["served-model-name"];
  return {
    root: config.model,
    names: first === undefined ? [config.model] : [first, ...others],
    contextTokensMax: config["max-model-len"],
    seed: config.seed,
    answerTokensMin: config["sim-answer-tokens-min"],
    answerTokensMax: config["sim-answer-tokens-max"],
    embeddingDimensions: config["sim-embedding-dimensions"],
    logprobsMax: config["max-logprobs"],
    // As many choices as may run at once: more would only wait for each other.
    choicesMax: config["max-num-seqs"],
    imagesMax: config["limit-mm-per-prompt"],
    autoToolChoice: config["enable-auto-tool-choice"],
    promptTokensDetails: config["enable-prompt-tokens-details"],
    forceIncludeUsage: config["enable-force-include-usage"],
    generates: config.runner !== "pooling",
    embeds: config.runner !== "generate",
  };
}

/** The engine's own options. */
export function engineOptionsOf(
  config: SimConfig,
  model: ServedModel,
): EngineOptions {
  return {
    modelName: model.names[0],
    contextTokensMax: config["max-model-len"],
    sequencesMax: config["max-num-seqs"],
    stepTokensMax: stepTokensMax(config),
    blockTokens: config["block-size"],
    blockCount: blockCount(config),
    prefixCaching: config["enable-prefix-caching"],
    overheadMs: config["sim-overhead-ms"],
    speed: {
      prefillTokensPerS: config["sim-prefill-tokens-per-s"],
      decodeTokensPerS: config["sim-decode-tokens-per-s"],
      decodeTokensPerSTotal: decodeTotal(config),
    },
  };
}
