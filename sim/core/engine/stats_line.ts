/** The line that vLLM logs about its throughput every few seconds. */
import type { EngineGauges, EngineTotals } from "./engine_metrics.ts";

/** What happened between two moments `seconds` apart; undefined when nothing did and nothing runs. */
export function statsLine(
  before: EngineTotals,
  after: EngineTotals,
  now: EngineGauges & { readonly seconds: number },
): string | undefined {
  const prompt = (after.promptTokens - before.promptTokens) / now.seconds;
  const generated = (after.generatedTokens - before.generatedTokens) / now.seconds;
  if (prompt === 0 && generated === 0 && now.running === 0 && now.waiting === 0) return undefined;
  const queries = after.cacheQueries - before.cacheQueries;
  const hits = after.cacheHits - before.cacheHits;
  const hitRate = queries === 0 ? 0 : hits / queries;
  return `Engine 000: Avg prompt throughput: ${prompt.toFixed(1)} tokens/s, ` +
    `Avg generation throughput: ${generated.toFixed(1)} tokens/s, ` +
    `Running: ${now.running} reqs, Waiting: ${now.waiting} reqs, ` +
    `GPU KV cache usage: ${percent(now.cacheUsage)}, Prefix cache hit rate: ${percent(hitRate)}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`;
}
