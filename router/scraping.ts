/** Keeps what engines say of their load up to date, for scheduling and for admission. */
import { spawnTask } from "@heddle/common/task";
import type { Endpoint } from "./core/fleet/endpoint.ts";
import { scrapeLoop, type ScrapeTarget } from "./edge/scrape/scrape_loop.ts";
import type { UpstreamPool } from "./edge/upstream.ts";
import type { Endpoints } from "./endpoints.ts";
import type { Queue } from "./queue.ts";

export interface ScrapingOptions {
  readonly endpoints: Endpoints;
  readonly pool: UpstreamPool;
  readonly queue: Queue;
  /** 0: engines are never asked. */
  readonly intervalMs: number;
}

/** Asks from now on, until the one that is returned is disposed. */
export function startScraping({ endpoints, pool, queue, intervalMs }: ScrapingOptions): Disposable {
  const stop = new AbortController();
  if (intervalMs > 0) {
    spawnTask("scrape", () =>
      scrapeLoop({
        intervalMs,
        pool,
        targets: () => targetsOf([...endpoints.table.endpoints.values()]),
        observe: (replicaId, sample) => endpoints.observe(replicaId, sample),
        onRound: () => queue.lookAgain(),
      }, stop.signal), stop.signal);
  }
  return { [Symbol.dispose]: () => stop.abort() };
}

/** A server of several models is asked once. */
function targetsOf(endpoints: readonly Endpoint[]): readonly ScrapeTarget[] {
  const byAddress = new Map<string, ScrapeTarget & { readonly replicaIds: string[] }>();
  for (const { origin, apiKey, replicaId } of endpoints) {
    const address = `${origin.secure} ${origin.host} ${origin.port} ${origin.basePath}`;
    const known = byAddress.get(address);
    if (known === undefined) byAddress.set(address, { origin, apiKey, replicaIds: [replicaId] });
    else known.replicaIds.push(replicaId);
  }
  return [...byAddress.values()];
}
