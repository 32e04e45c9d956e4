/** The simulated engine: it takes vLLM's flags, so that it is started as vLLM would be. */
import { type Built, type EngineAdapter, httpPort, type LaunchInput, refused } from "./engine.ts";
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
      : simulated(input),
  load: vllm.load,
};

// Its ranks do not talk to each other.
function simulated(input: LaunchInput): Built {
  const built = buildVllm(input);
  return built.kind === "refused" ? built : { ...built, ports: httpPort(input.spec) };
}
