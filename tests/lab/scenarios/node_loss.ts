/** A node loses its network, is given up and replaced, and comes back with engines nobody wants. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { type Fleet, fleetOf, H100, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { Traffic } from "../traffic.ts";
import { waitFor } from "../wait_for.ts";

export const nodeLoss: Scenario = {
  title:
    "a node is cut off: unreachable, lost, rebuilt on its fabric; back, its old engine goes first",
  limitMs: 1_800_000,
  prepare: prepareFleet,
  run,
};

const A100 = {
  ...H100,
  gpus: [{
    name: "NVIDIA A100-SXM4-80GB",
    count: 8,
    memoryMib: 81920,
    computeCapability: "8.0",
  }],
};

/** One on two nodes of the first fabric, which has a third; and one that is elsewhere. */
const CATALOG = `models:
  - name: giant
    source: demo
    profiles:
      - { name: two-nodes, engine: sim, gpu_class: h100-80g, tp: 8, pp: 2, nodes: 2 }
  - name: small
    source: demo
    profiles:
      - { name: one-gpu, engine: sim, gpu_class: a100-80g }
`;

/** Short, so that it is over soon; the order of things is the same. */
const TIMING = { heartbeat: "2s", unreachable: "8s", lost: "30s" };

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet with a spare node is onboarded", async () => {
    const fleet = await fleetOf(lab, {
      catalog: CATALOG,
      nodes: ["gpu-a-1", "gpu-a-2", "gpu-a-3", "gpu-b-1"],
      hardware: { "gpu-b-1": A100 },
      values: { heddle_control_extra: { timing: TIMING } },
    });
    await fleet.play("site.yml");
    await fleet.ready("small");
    return fleet;
  });
  const first = await fleet.ready("giant");
  const victim = (await shardsOf(fleet, "giant")).find(({ rank }) => rank === 1)?.node ?? "";
  const old = first[victim];
  const traffic = await Traffic.start(fleet, "small", 2);
  await lab.step("its cable is out: it is unreachable, and what it ran counts on", async () => {
    await fleet.node(victim).link("down");
    await waitFor("unreachable", async () => await stateOf(fleet, victim) === "unreachable");
    deepEqual(await fleet.ready("giant"), first);
    equal(await stateOf(fleet, victim), "unreachable");
  });
  const second = await lab.step(
    "it is lost, and the model is rebuilt on the same fabric",
    async () => {
      await waitFor("lost", async () => await stateOf(fleet, victim) === "lost", 60_000);
      const pids = await waitFor("another replica", async () => {
        const shards = await shardsOf(fleet, "giant");
        return shards.length === 2 && shards.every(({ node }) => node !== victim) &&
          await fleet.ready("giant");
      }, 120_000);
      equal((await fleet.replicas()).find(({ model }) => model === "giant")?.fabric, "ib-a");
      equal((await fleet.ask("giant", "hello")).code, 0);
      return pids;
    },
  );
  await lab.step("the old engine still runs there, where nobody can reach it", async () => {
    equal((await fleet.node(victim).exec(["test", "-d", `/proc/${old}`])).code, 0);
  });
  await lab.step("it comes back: its old engine is stopped, then its GPUs are free", async () => {
    await fleet.node(victim).link("up");
    await waitFor("ready with every GPU free", async () => {
      const node = (await fleet.nodes()).find(({ name }) => name === victim);
      if (node?.state !== "ready" || node.used_gpus.length > 0) return false;
      // At the very moment at which control counts them as free.
      const { code } = await fleet.node(victim).exec(["test", "-d", `/proc/${old}`]);
      ok(code !== 0, `GPUs are free and the engine with pid ${old} still runs`);
      return true;
    }, 120_000);
    deepEqual(await fleet.ready("giant"), second);
  });
  await lab.step("what ran elsewhere served all the time", async () => {
    await traffic.stop();
    lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
    ok(traffic.served > 0);
  });
}

async function stateOf(fleet: Fleet, node: string): Promise<string | undefined> {
  return (await fleet.nodes()).find(({ name }) => name === node)?.state;
}

/** Of the model's ready replica. */
async function shardsOf(fleet: Fleet, model: string) {
  const ready = (await fleet.replicas())
    .find((each) => each.model === model && each.state === "ready");
  return ready?.shards ?? [];
}
