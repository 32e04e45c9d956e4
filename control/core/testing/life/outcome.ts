/** A whole run of a scenario, and what is wrong at its end. */
import type { FakeShard } from "../fake_node.ts";
import { roomFor, unusedOn } from "./room.ts";
import { scenario } from "./scenario.ts";
import { SIM_TIMINGS, type Simulation, STEP_MS } from "../simulation.ts";
import { FREE_BELOW_BYTES } from "../weights/keeper.ts";
import { Shortfall } from "./shortfall.ts";
import { relabel, trouble } from "./trouble.ts";

/** How long faults come. */
const TROUBLE_MS = 300_000;

/**
 * From the last fault to rest, when nothing may be left over: what is silent returns or is lost,
 * control waits for its nodes; then the longest backoff and startup_timeout, a drain to its end, and
 * ten passes. When the desired number must be there says `Shortfall`.
 */
export const QUIET_MS = 2 * SIM_TIMINGS.lostMs + 2 * SIM_TIMINGS.backoff.maxMs + 120_000 +
  2 * SIM_TIMINGS.drainGraceMs + 10 * STEP_MS;

/** Starts, gets into trouble, is mended, comes to rest, and is looked at. */
export function liveThrough(seed: number, nodesMax: number): Simulation {
  const lived = scenario(seed, nodesMax);
  const { sim } = lived;
  for (const node of sim.nodes.keys()) if (sim.random.chance(0.4)) relabel(sim, node);
  // Until there is a newer one, what is restored knows of no node.
  if (!lived.gentle) sim.backUp();
  sim.run(40_000);
  trouble(lived, TROUBLE_MS);
  const shortfall = new Shortfall(sim);
  shortfall.run(QUIET_MS / 2);
  for (const router of sim.routers) router.quiet = true;
  shortfall.run(QUIET_MS / 2);
  for (const wrong of unsettledBusiness(sim)) sim.violate("desired_reached", wrong);
  return sim;
}

/** What is wrong in the end, from the nodes' processes and the catalog; empty when all is well. */
export function unsettledBusiness(sim: Simulation): readonly string[] {
  const wrong: string[] = [];
  const running = [...sim.nodes.values()].flatMap((node) => node.running());
  const byReplica = Map.groupBy(running, (shard) => shard.spec.replicaId);
  const wholeOf = new Map<string, number>();
  for (const [id, shards] of byReplica) {
    const spec = shards[0]?.spec;
    if (spec === undefined) continue;
    if (shards.length !== spec.shardCount) {
      wrong.push(`${id} runs ${shards.length}/${spec.shardCount}`);
    }
    if (!shards.every((shard) => shard.state === "ready")) wrong.push(`${id} is not ready`);
    wholeOf.set(spec.model, (wholeOf.get(spec.model) ?? 0) + 1);
  }
  for (const { name, scaling } of sim.world.catalog.catalog.models) {
    const have = wholeOf.get(name) ?? 0;
    wholeOf.delete(name);
    if (have > scaling.min) wrong.push(`${name} has ${have} of ${scaling.min}`);
    if (have < scaling.min && roomFor(sim, name, { atOnce: false })) {
      wrong.push(`${name} has ${have} of ${scaling.min} though there is room`);
    }
  }
  for (const [model, count] of wholeOf) wrong.push(`${model} is in no catalog and runs ${count}`);
  return [...wrong, ...wrongLists(sim, byReplica), ...roomNotMade(sim)];
}

/** Routers and control itself know of what runs, and of nothing else. */
function wrongLists(
  sim: Simulation,
  byReplica: ReadonlyMap<string, readonly FakeShard[]>,
): readonly string[] {
  const wrong: string[] = [];
  const served = [...byReplica.keys()].sort().join();
  for (const router of sim.routers) {
    const listed = router.endpoints().join();
    if (listed !== served) wrong.push(`${router.name} has ${listed}, and ${served} run`);
  }
  const known = [...sim.world.replicas.keys()].sort().join();
  if (known !== served) wrong.push(`control believes in ${known}, and ${served} run`);
  return wrong;
}

/** Weights that nobody asks for lie where there is little room. */
function roomNotMade(sim: Simulation): readonly string[] {
  return [...sim.nodes.values()].flatMap(({ name, disk }) =>
    disk.freeBytes() < FREE_BELOW_BYTES
      ? unusedOn(sim, disk).map((source) => `${name} is full, and has ${source} for nobody`)
      : []
  );
}
