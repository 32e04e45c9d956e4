/** What happens between the start of the process and the opening of the port. */
import { blockCount, type SimConfig } from "./config.ts";
import { DEATH_CAUSES, isLoadFault } from "./core/fault.ts";
import { log, logRaw } from "./edge/log.ts";

/** Takes as long as loading takes. The exit code, when the engine dies on the way. */
export async function load(config: SimConfig): Promise<number | undefined> {
  const faults = config["sim-fault"].filter(isLoadFault);
  log("INFO", "loader", `Loading model ${config.model}, tp=${config["tensor-parallel-size"]}`);
  const death = faults.find((fault) => fault.kind === "die_loading");
  if (death !== undefined) {
    await wait(death.at_ms);
    logRaw("Traceback (most recent call last):");
    logRaw(DEATH_CAUSES[death.cause]);
    logRaw("RuntimeError: Engine core initialization failed. See root cause above.");
    return death.code;
  }
  // The signal handlers keep the process alive.
  if (faults.some((fault) => fault.kind === "never_ready")) await new Promise(() => {});
  const slowMs = faults.map((fault) => fault.kind === "slow_load" ? fault.ms : 0);
  const loadMs = slowMs.reduce((sum, ms) => sum + ms, config["sim-load-ms"]);
  await wait(loadMs);
  for (const line of summary(config, loadMs)) log("INFO", "loader", line);
  return undefined;
}

/** In vLLM's words: tools look for these lines. */
function summary(config: SimConfig, loadMs: number): readonly string[] {
  const context = config["max-model-len"];
  const tokens = blockCount(config) * config["block-size"];
  return [
    `Model loading took ${(loadMs / 1000).toFixed(2)} seconds`,
    `GPU KV cache size: ${tokens.toLocaleString("en")} tokens`,
    `Maximum concurrency for ${context.toLocaleString("en")} tokens per request: ` +
    `${(tokens / context).toFixed(2)}x`,
  ];
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
