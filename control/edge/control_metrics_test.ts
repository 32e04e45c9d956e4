import { deepEqual } from "node:assert/strict";
import { Registry } from "prom-client";
import { catalog } from "../core/testing/builders.ts";
import { FakeNode } from "../core/testing/fake_node.ts";
import { Simulation } from "../core/testing/simulation.ts";
import { observe } from "../core/observing/observe.ts";
import { viewModels } from "../core/views/models.ts";
import { viewReplicas } from "../core/views/replicas.ts";
import { controlMetrics } from "./control_metrics.ts";

const READY = 4;
const DEGRADED = 5;

Deno.test("heddle_control_replicas_unwell counts what is ready and may hang, or is degraded, and is 0 after", async () => {
  const profiles = [{ name: "p", gpu_class: "h100-80g" }];
  const sim = new Simulation({
    seed: 1,
    known: true,
    nodes: [new FakeNode({ name: "n1", shape: { gpus: 1 }, loadMs: 1_000, stopMs: 500 })],
    catalog: catalog({ name: "m", source: "s", profiles }),
  });
  sim.run(20_000);
  let world = sim.world;
  const registry = new Registry();
  const none = () => 0;
  controlMetrics(registry, {
    ...{ nodes: () => [], attached: () => [], decisions: () => [], term: none, keys: none },
    ...{ agentStreams: none, watchClients: none, logReaders: none, consoles: none },
    ...{ catalogRevision: none, sharedLimits: none },
    ...{ settled: () => true, leading: () => true, storeAway: () => false },
    replicas: () => viewReplicas(world, sim.now),
    models: () => viewModels(world, sim.now),
  });
  const [shard] = [...sim.world.replicas.values()].flatMap(({ shards }) => shards);
  const says = async (state: number, reason: string) => {
    const status = {
      ...{ shardId: shard?.id ?? "", replicaId: "", state, attempt: 1, reason, message: "" },
      ...{ permanent: false, address: "10.0.0.1:1", apiKey: "k", logTail: [], progress: "" },
      inStateMs: 0n,
    };
    world = observe(sim.world, { kind: "shard_status", node: "n1", status }, sim.now);
    const text = await registry.getSingleMetricAsString("heddle_control_replicas_unwell");
    return text.split("\n").flatMap((line) =>
      /\{model="m",state="(\w+)"\} (\d)$/.exec(line)?.slice(1) ?? []
    );
  };
  deepEqual(await says(READY, "suspected"), ["suspected", "1", "degraded", "0"]);
  deepEqual(await says(DEGRADED, "engine_hung"), ["suspected", "0", "degraded", "1"]);
  deepEqual(await says(READY, ""), ["suspected", "0", "degraded", "0"]);
});
