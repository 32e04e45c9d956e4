/** Every engine that the agent can run. A new one is its own file and a line here. */
import type { EngineAdapter } from "./engine.ts";
import { llamacpp } from "./llamacpp.ts";
import { sglang } from "./sglang.ts";
import { sim } from "./sim.ts";
import { vllm } from "./vllm.ts";

const ADAPTERS: readonly EngineAdapter[] = [vllm, sglang, llamacpp, sim];

export const ENGINE_NAMES: readonly string[] = ADAPTERS.map(({ name }) => name);

/** The adapter of an engine; undefined for an engine of a newer Heddle. */
export function adapterOf(name: string): EngineAdapter | undefined {
  return ADAPTERS.find((adapter) => adapter.name === name);
}
