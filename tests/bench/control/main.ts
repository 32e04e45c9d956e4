/**
 * `deno task bench:control`: what control's decisions cost, and how that grows with the fleet. Prints
 * the median processor time of a few repetitions, and the growth from the size before: ×2.0 is linear.
 */
import { cpuUsage } from "node:process";
import type { HeartbeatSeen, Registered } from "../../../control/core/event.ts";
import { candidates } from "../../../control/core/placing/candidate.ts";
import { place } from "../../../control/core/placing/place.ts";
import { observeHeartbeats } from "../../../control/core/observing/heartbeat.ts";
import { matters } from "../../../control/core/observing/matters.ts";
import { publish } from "../../../control/core/publish.ts";
import { reconcile } from "../../../control/core/reconcile.ts";
import { record } from "../../../control/core/deciding/record.ts";
import type { World } from "../../../control/core/world.ts";
import { encodeShardState } from "@heddle/proto/shard_state";
import { say } from "../../../tools/say.ts";
import { benchKeys } from "./keys.ts";
import { type Fleet, freshWorld, registerAll, runningFleet } from "./fleet.ts";

const SIZES = [125, 250, 500, 1_000] as const;

/** 2,000 at the largest size; they hold half of the GPUs. */
const REPLICAS_PER_NODE = 2;

/** Odd, so that the median is one of them. */
const REPEATS = 7;

/** How often an agent sends a heartbeat, in ms. */
const HEARTBEAT_MS = 5_000;

interface Measure {
  readonly name: string;
  readonly unit: string;
  run(fleet: Fleet): number;
}

const MEASURES: readonly Measure[] = [
  { name: "idle pass", unit: "ms", run: idlePass },
  { name: "placing one replica", unit: "ms", run: placeOne },
  { name: "a pass that places one", unit: "ms", run: placingPass },
  { name: "registering the fleet", unit: "ms", run: registering },
  { name: "heartbeats, CPU", unit: "%", run: heartbeating },
];

if (import.meta.main) {
  main();
  await benchKeys();
}

function main(): void {
  const before = new Map<string, number>();
  for (const size of SIZES) {
    const fleet = runningFleet(size, size * REPLICAS_PER_NODE);
    say(`${size} nodes of 8 GPUs, ${fleet.world.replicas.size} replicas`);
    for (const { name, unit, run } of MEASURES) {
      const value = median(Array.from({ length: REPEATS }, () => run(fleet)));
      const last = before.get(name);
      const growth = last === undefined ? "" : `  ×${(value / last).toFixed(1)}`;
      before.set(name, value);
      say(`  ${name.padEnd(24)}${value.toFixed(2).padStart(9)} ${unit}${growth}`);
    }
  }
}

/** Decides, records and publishes nothing. */
function idlePass({ world, now }: Fleet): number {
  return timed(() => {
    const plan = reconcile(world, now + 250);
    if (plan.actions.length > 0) throw new Error("an idle pass has nothing to do");
    publish(record(world, plan, now + 250), now + 250);
  });
}

/** The decision alone, over nodes whose free devices are known. */
function placeOne({ world, now }: Fleet): number {
  const [model] = world.catalog.catalog.models;
  const [profile] = model?.profiles ?? [];
  if (model === undefined || profile === undefined) throw new Error("the fleet has a model");
  const nodes = [...candidates(world, now).values()];
  return timed(() => {
    if (place({ model, profile }, nodes).kind !== "placed") throw new Error("there is room");
  });
}

/** All that control does to place one more replica: find what is free, choose, record, publish. */
function placingPass({ world, now }: Fleet): number {
  const more = withOneMore(world);
  return timed(() => {
    const plan = reconcile(more, now + 250);
    const placed = plan.actions.filter((action) => action.kind === "place_replica").length;
    if (placed !== 1) throw new Error(`${placed} were placed`);
    publish(record(more, plan, now + 250), now + 250);
  });
}

function withOneMore(world: World): World {
  const { catalog } = world.catalog;
  const models = catalog.models.map((model, index) =>
    index === 0
      ? { ...model, scaling: { ...model.scaling, min: model.scaling.min + 1, max: 10_000 } }
      : model
  );
  const name = models[0]?.name ?? "";
  const scaled = { failedStarts: 0, blocked: [], scaled: { count: 0, reason: "", at: 0 } };
  return {
    ...world,
    models: new Map(world.models).set(name, scaled),
    catalog: { ...world.catalog, catalog: { models } },
  };
}

/** What a new control does when the whole fleet comes back with everything it runs. */
function registering({ world, nodes }: Fleet): number {
  const full = withShards(world, nodes);
  return timed(() => {
    const adopted = registerAll(freshWorld(world.catalog.catalog), full);
    if (adopted.replicas.size !== world.replicas.size) throw new Error("all are adopted");
  });
}

function withShards(world: World, nodes: readonly Registered[]): readonly Registered[] {
  const shards = [...world.replicas.values()].flatMap((replica) => replica.shards);
  const byNode = Map.groupBy(shards, (shard) => shard.node);
  return nodes.map((node) => ({
    ...node,
    shards: (byNode.get(node.node) ?? []).map(({ spec, status, id }) => ({
      spec,
      status: {
        shardId: id,
        replicaId: spec.replicaId,
        state: encodeShardState("ready"),
        revision: { term: 0n, sequence: BigInt(status?.revision.sequence ?? 0) },
        attempt: 1,
        reason: "",
        message: "",
        permanent: false,
        pid: 1,
        address: status?.address ?? "",
        apiKey: "key",
        logTail: [],
        inStateMs: 0n,
        progress: "",
      },
    })),
  }));
}

/** One heartbeat of every node as the loop takes it, as a share of the time between two. */
function heartbeating({ world, nodes, now }: Fleet): number {
  const shards = [...world.replicas.values()].flatMap((replica) => replica.shards);
  const byNode = Map.groupBy(shards, (shard) => shard.node);
  const beats = nodes.map(({ node }) => beatOf(node, byNode.get(node)?.map(({ id }) => id) ?? []));
  const tookMs = timed(() => {
    for (const beat of beats) if (matters(world, beat, now)) throw new Error("it changes nothing");
    observeHeartbeats(world, beats.map((beat) => ({ ...beat, at: now })));
  });
  return (tookMs / HEARTBEAT_MS) * 100;
}

function beatOf(node: string, shardIds: readonly string[]): HeartbeatSeen {
  return {
    kind: "heartbeat",
    node,
    heartbeat: {
      gpus: [],
      hcas: [],
      fabrics: [],
      hardwarePresent: false,
      modelDirs: [],
      modelFiles: [],
      modelFilesPresent: false,
      engines: [],
      enginesPresent: false,
      problems: [],
      loads: shardIds.map((shardId) => ({ shardId, runningRequests: 1, waitingRequests: 0 })),
    },
  };
}

/** Processor time in ms, its own threads for garbage included: others may use the machine too. */
function timed(work: () => void): number {
  const began = cpuUsage();
  work();
  const { user, system } = cpuUsage(began);
  return (user + system) / 1_000;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
