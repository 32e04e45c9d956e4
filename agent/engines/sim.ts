/** The simulated engine: it takes vLLM's flags, so that it is started as vLLM would be. */
import type { EngineAdapter } from "./engine.ts";
import { buildVllm, vllm } from "./vllm.ts";

export const sim: EngineAdapter = {
  name: "sim",
  versionArgs: () => ["--version"],
  build: buildVllm,
  load: vllm.load,
};
