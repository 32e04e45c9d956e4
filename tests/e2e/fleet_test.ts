/** `up --fleet`: replicas on several nodes keep to one fabric, with described hardware. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { Heddle, type Replica, reserve, ROOT } from "./heddle.ts";
import { streamOnce } from "./traffic.ts";

Deno.test("up --fleet places multi-node replicas inside one fabric and serves them", async (t) => {
  await using place = await reserve();
  // As a newcomer does it: the same directory served something else before.
  equal(await (await Heddle.start(place)).stop(), 0);
  await using heddle = await Heddle.start(place, [
    "--fleet",
    join(ROOT, "examples/fleet.yaml"),
  ]);
  const replicas = await heddle.replicas();
  const of = (model: string): Replica => {
    const found = replicas.find((replica) => replica.model === model);
    ok(found, `${model} in ${JSON.stringify(replicas)}`);
    return found;
  };

  await t.step("nodes show their classes and fabrics", async () => {
    const nodes = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
    equal(nodes.length, 5);
    const classes = nodes.flatMap((node: { inventory: { gpus: { gpu_class: string }[] } }) =>
      node.inventory.gpus.map((gpu) => gpu.gpu_class)
    );
    deepEqual([...new Set(classes)].toSorted(), ["a100-80g", "h100-80g", "l40s-48g"]);
    equal(classes.length, 8 + 8 + 4 + 4 + 2);
  });

  await t.step("giant takes both H100 nodes of ib-a, with that fabric's HCAs", () => {
    const giant = of("giant");
    equal(giant.fabric, "ib-a");
    deepEqual(giant.shards.map((shard) => shard.node).toSorted(), ["h100-a", "h100-b"]);
    for (const shard of giant.shards) {
      equal(shard.gpus.length, 8);
      equal(shard.hcas.length, 8);
    }
  });

  await t.step("wide takes the A100 nodes of ib-b", () => {
    const wide = of("wide");
    equal(wide.fabric, "ib-b");
    deepEqual(wide.shards.map((shard) => shard.node).toSorted(), ["a100-a", "a100-b"]);
  });

  await t.step("small runs on the node without InfiniBand", () => {
    deepEqual(of("small").shards.map((shard) => shard.node), ["l40s-a"]);
  });

  await t.step("every model answers", async () => {
    for (const model of ["giant", "wide", "small"]) {
      const ending = await streamOnce(heddle.openaiUrl, { model, maxTokens: 5, prompt: "hello" });
      equal(ending.kind, "ok", ending.detail);
    }
  });

  await t.step("explain says why the other nodes were not used", async () => {
    const { stdout } = await heddle.ctl("explain", "giant");
    match(stdout, /a100-a.*gpu_class/);
  });

  await t.step("a cordoned node is shown and takes nothing new", async () => {
    equal((await heddle.ctl("cordon", "l40s-a", "--reason", "fan noise")).code, 0);
    const nodes = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
    const node = nodes.find((one: { name: string }) => one.name === "l40s-a");
    equal(node.state, "cordoned");
    equal(node.decision_reason, "fan noise");
    equal((await heddle.ctl("uncordon", "l40s-a")).code, 0);
  });
});
