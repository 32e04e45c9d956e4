/** The simulated engine: it takes vLLM's flags, so that it is started as vLLM would be. */
import { type EngineAdapter, refused } from "./engine.ts";
import { buildVllm, vllm } from "./vllm.ts";

export const sim: EngineAdapter = {
  name: "sim",
  versionArgs: () => ["--version"],
  build: (input) =>
    input.spec.launchMode === "ray"
      ? refused(
        "launch_mode_unsupported",
        "Cannot start sim with launch_mode ray: it knows mp, leave it out",
      )
      : buildVllm(input),
  load: vllm.load,
};
