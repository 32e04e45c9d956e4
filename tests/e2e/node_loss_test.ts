/** A machine dies, a machine is drained: what ran there runs elsewhere, by the rules, unnoticed. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { eventually, EVENTUALLY_MS_MAX, Heddle, isAlive, type Replica, reserve } from "./heddle.ts";
import { startTraffic, type Traffic } from "./traffic.ts";

const H100 = {
  gpus: { name: "NVIDIA H100 80GB HBM3", count: 4, memory_mib: 81559, compute_capability: "9.0" },
  nvlink: "all",
  hcas: { count: 4, link_layer: "InfiniBand", rate: "400 Gb/sec (4X NDR)" },
};

const names = (fabric: string) => ["1", "2", "3"].map((number) => `${fabric}${number}`);

/** Two fabrics with a node to spare on each, so that two spare nodes are no island. */
const ISLANDS = {
  catalog: "catalog.yaml",
  nodes: ["a", "b"].flatMap((fabric) =>
    names(fabric).map((name) => ({ name, ...H100, fabric: `ib-${fabric}` }))
  ),
};

const GIANTS = {
  models: [{
    name: "giant",
    source: "demo",
    scaling: { min: 2 },
    profiles: [
      { name: "two-nodes", engine: "sim", gpu_class: "h100-80g", tp: 4, pp: 2, nodes: 2 },
    ],
  }],
};

const PAIR = {
  catalog: "catalog.yaml",
  nodes: ["n1", "n2"].map((name) => ({ name, ...H100, fabric: "ib-a" })),
};

const DEMO = {
  models: [{
    name: "demo",
    source: "demo",
    scaling: { min: 2 },
    profiles: [{ name: "sim", engine: "sim", gpu_class: "h100-80g" }],
  }],
};

/** Long enough for agents on a machine that has no time for them. */
const TIMING = { heartbeat: "1s", unreachable: "8s", lost: "15s" };

async function startFleet(
  place: { readonly state: string; readonly port: number },
  fleet: object,
  catalog: object,
): Promise<Heddle> {
  await Deno.writeTextFile(join(place.state, "catalog.yaml"), stringify(catalog));
  await Deno.writeTextFile(join(place.state, "fleet.yaml"), stringify(fleet));
  return await Heddle.start(place, ["--fleet", join(place.state, "fleet.yaml")]);
}

Deno.test("a node dies: its replica is rebuilt on the same fabric, and never across two", async (t) => {
  await using place = await reserve();
  await using heddle = await startFleet(place, ISLANDS, GIANTS);
  const before = await ready(heddle, 2);
  deepEqual(before.map(({ fabric }) => fabric).toSorted(), ["ib-a", "ib-b"]);
  for (const replica of before) within(replica);
  await t.step(
    "control restarts under traffic: no engine is another, no request fails",
    async () => {
      const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "giant", maxTokens: 30 });
      try {
        await served(traffic, 8);
        await hurry(heddle);
        await served(traffic, 8);
      } finally {
        await traffic.stop();
      }
      deepEqual(traffic.endings.filter(({ kind }) => kind !== "ok"), []);
      deepEqual(pidsOf(await ready(heddle, 2)), pidsOf(before));
      for (const pid of pidsOf(before)) ok(await isAlive(pid), `engine ${pid}`);
    },
  );

  const [victim, other] = await ready(heddle, 2);
  ok(victim && other);
  const dead = victim.shards[1];
  ok(dead);

  await t.step("the rest of it, and a spare node of its fabric, take over", async () => {
    await kill(heddle, victim, dead.node);
    const rebuilt = await eventually("the replica is rebuilt", async () => {
      const replicas = await readyReplicas(heddle);
      return replicas.find(({ replica_id: id }) =>
        ![victim, other].some((r) => r.replica_id === id)
      );
    }, 2 * EVENTUALLY_MS_MAX);
    within(rebuilt);
    equal(rebuilt.fabric, victim.fabric);
    const left = names(victim.fabric === "ib-a" ? "a" : "b").filter((name) => name !== dead.node);
    deepEqual(rebuilt.shards.map(({ node }) => node).toSorted(), left);
  });

  await t.step("the other fabric's replica has noticed nothing", async () => {
    const same = (await ready(heddle, 2)).find(({ replica_id: id }) => id === other.replica_id);
    deepEqual(pidsOf(same ? [same] : []), pidsOf([other]));
    for (const pid of pidsOf([other])) ok(await isAlive(pid), `engine ${pid}`);
  });

  await t.step("the node comes back, empty, and nothing moves", async () => {
    const replicas = (await ready(heddle, 2)).map(({ replica_id: id }) => id);
    await signalAgent(heddle, dead.node, "SIGCONT");
    await eventually("it is ready and holds nothing", async () => {
      const node = await nodeOf(heddle, dead.node);
      return node?.state === "ready" && node.replica_ids.length === 0 ? true : undefined;
    });
    deepEqual((await ready(heddle, 2)).map(({ replica_id: id }) => id), replicas);
  });
});

Deno.test("a node is drained under traffic: no request fails, and nothing is left on it", async () => {
  await using place = await reserve();
  await using heddle = await startFleet(place, PAIR, DEMO);
  const before = await ready(heddle, 2);
  const home = before[0]?.shards[0]?.node;
  ok(home);
  const leaving = before.filter(({ shards }) => shards[0]?.node === home);
  const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 30 });
  try {
    await served(traffic, 8);
    equal((await heddle.ctl("drain", home, "--yes", "--reason", "new fans")).code, 0);
    await eventually(`${home} is drained`, async () => {
      const node = await nodeOf(heddle, home);
      return node?.state === "drained" ? true : undefined;
    }, 2 * EVENTUALLY_MS_MAX);
    await served(traffic, 8);
  } finally {
    await traffic.stop();
  }
  deepEqual(traffic.endings.filter(({ kind }) => kind !== "ok"), []);
  const after = await ready(heddle, 2);
  for (const { shards } of after) ok(shards[0]?.node !== home);
  for (const pid of pidsOf(leaving)) equal(await isAlive(pid), false, `engine ${pid}`);
  equal((await heddle.ctl("uncordon", home)).code, 0);
});

/** All ranks on different nodes of one fabric, with as many of its HCAs each. */
function within({ fabric, shards }: Replica): void {
  equal(shards.length, 2);
  equal(new Set(shards.map(({ node }) => node)).size, 2);
  for (const { node, hcas } of shards) {
    ok(fabric === `ib-${node[0]}`, `${node} for a replica on ${fabric}`);
    equal(hcas.length, 4);
  }
}

/** Control begins anew with short silences; what runs is adopted. */
async function hurry(heddle: Heddle): Promise<void> {
  const file = join(heddle.state, "control/control.yaml");
  const config = parse(await Deno.readTextFile(file));
  await Deno.writeTextFile(file, stringify({ ...config, timing: { ...config.timing, ...TIMING } }));
  const [old] = await heddle.pids("control");
  await heddle.killProgram("control");
  await eventually("control leads again, with every node", async () => {
    const [now] = await heddle.pids("control");
    if (now === undefined || now === old) return undefined;
    const { code, stdout } = await heddle.ctl("nodes", "--json");
    if (code !== 0) return undefined;
    const nodes: Node[] = JSON.parse(stdout);
    return nodes.length === ISLANDS.nodes.length && nodes.every(({ state }) => state === "ready")
      ? true
      : undefined;
  });
}

/** As when the power fails: the agent says no more, and no process of its engines is left. */
async function kill(heddle: Heddle, replica: Replica, node: string): Promise<void> {
  // Stopped, not ended: `up` would start it again.
  await signalAgent(heddle, node, "SIGSTOP");
  for (const shard of replica.shards) {
    if (shard.node === node && shard.pid !== null) Deno.kill(shard.pid, "SIGKILL");
  }
}

async function signalAgent(heddle: Heddle, node: string, signal: Deno.Signal): Promise<void> {
  const pids = await heddle.pids(`agents/${node}`);
  equal(pids.length, 1, `one agent of ${node}`);
  for (const pid of pids) Deno.kill(pid, signal);
}

interface Node {
  readonly name: string;
  readonly state: string;
  readonly replica_ids: readonly string[];
}

async function nodeOf(heddle: Heddle, name: string): Promise<Node | undefined> {
  const { code, stdout } = await heddle.ctl("nodes", "--json");
  if (code !== 0) return undefined;
  const nodes: Node[] = JSON.parse(stdout);
  return nodes.find((node) => node.name === name);
}

async function readyReplicas(heddle: Heddle): Promise<Replica[]> {
  return (await heddle.replicas().catch(() => [])).filter(({ state }) => state === "ready");
}

function ready(heddle: Heddle, count: number): Promise<Replica[]> {
  return eventually(`${count} replicas are ready`, async () => {
    const replicas = await readyReplicas(heddle);
    return replicas.length === count ? replicas : undefined;
  });
}

function pidsOf(replicas: readonly Replica[]): number[] {
  return replicas.flatMap(({ shards }) => shards.map(({ pid }) => pid ?? 0)).toSorted();
}

/** Waits until `more` further requests have ended. */
async function served(traffic: Traffic, more: number): Promise<void> {
  const from = traffic.endings.length;
  await eventually(
    `${more} more requests end`,
    () => Promise.resolve(traffic.endings.length >= from + more || undefined),
  );
}
