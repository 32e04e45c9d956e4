/** What the user of the endpoint notices when a process of Heddle dies: as little as can be. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { eventually, Heddle, isAlive, type Replica, reserve } from "./heddle.ts";
import { startTraffic, streamOnce, type Traffic } from "./traffic.ts";

/** Two replicas, so that a request without content has somewhere else to go. */
const CATALOG = `
models:
  - name: demo
    source: demo
    scaling: { min: 2, max: 2 }
    profiles:
      - name: sim
        engine: sim
        args: [--max-model-len, "8192"]
`;

Deno.test("processes die, requests do not", async (t) => {
  await using place = await reserve();
  const catalog = join(place.state, "catalog.yaml");
  await Deno.writeTextFile(catalog, CATALOG);
  await using heddle = await Heddle.start(place, ["--catalog", catalog]);
  const [node] = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
  const agent = `agents/${node.name}`;
  const before = await readyReplicas(heddle);
  const enginePids = pidsOf(before);
  equal(enginePids.length, 2);

  await t.step(
    "kill -9 the agent: engines go on, no request fails, the agent adopts them",
    async () => {
      const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
      await served(traffic, 8);
      await restarts(heddle, agent);
      await served(traffic, 16);
      await adopted(heddle, enginePids);
      deepEqual(failures(await traffic.stop()), []);
    },
  );

  await t.step("kill -9 control: the router serves on, also through its own restart", async () => {
    const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
    await served(traffic, 8);
    await restarts(heddle, "control");
    await served(traffic, 16);
    await adopted(heddle, enginePids);
    deepEqual(failures(await traffic.stop()), []);
  });

  await t.step("kill -9 control and agent at once: no engine's pid changes", async () => {
    const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
    await served(traffic, 4);
    await Promise.all([restarts(heddle, "control"), restarts(heddle, agent)]);
    await adopted(heddle, enginePids);
    deepEqual(failures(await traffic.stop()), []);
    for (const pid of enginePids) ok(await isAlive(pid), `engine ${pid}`);
  });

  await t.step(
    "kill -9 an engine: with content one error event, without content no failure",
    async () => {
      const traffic = startTraffic(heddle.openaiUrl, { clients: 8, model: "demo", maxTokens: 60 });
      await served(traffic, 16);
      const [victim] = pidsOf(await readyReplicas(heddle));
      ok(victim);
      Deno.kill(victim, "SIGKILL");
      await served(traffic, 32);
      const endings = await traffic.stop();
      for (const ending of failures(endings)) {
        ok(ending.hadContent, `a request without content failed: ${JSON.stringify(ending)}`);
        equal(ending.kind, "error_event", JSON.stringify(ending));
        ok(!ending.detail.includes("[DONE]"), ending.detail);
      }
      const after = await eventually("two replicas are ready again", async () => {
        const ready = await readyReplicas(heddle).catch(() => []);
        return ready.length === 2 ? ready : undefined;
      });
      ok(!pidsOf(after).includes(victim));
      const ending = await streamOnce(heddle.openaiUrl, {
        model: "demo",
        maxTokens: 5,
        prompt: "after",
      });
      equal(ending.kind, "ok", ending.detail);
    },
  );
});

async function readyReplicas(heddle: Heddle): Promise<Replica[]> {
  return (await heddle.replicas()).filter((replica) => replica.state === "ready");
}

function pidsOf(replicas: readonly Replica[]): number[] {
  return replicas.flatMap((replica) => replica.shards.map((shard) => shard.pid ?? 0)).toSorted();
}

function failures(endings: Traffic["endings"]): Traffic["endings"] {
  return endings.filter((ending) => ending.kind !== "ok");
}

/** Waits until `more` further requests have ended. */
async function served(traffic: Traffic, more: number): Promise<void> {
  const from = traffic.endings.length;
  await eventually(
    `${more} more requests end`,
    () => Promise.resolve(traffic.endings.length >= from + more || undefined),
  );
}

/** Kills a program and waits until `up` has started it again under another pid. */
async function restarts(heddle: Heddle, program: string): Promise<void> {
  const old = await heddle.pids(program);
  equal(old.length, 1, `${program} runs once`);
  await heddle.killProgram(program);
  await eventually(`${program} runs again`, async () => {
    const now = await heddle.pids(program);
    return now.length === 1 && now[0] !== old[0] ? true : undefined;
  });
}

/** Waits until control shows the same engines as ready again. */
async function adopted(heddle: Heddle, enginePids: readonly number[]): Promise<void> {
  await eventually("the same engines are ready again", async () => {
    const pids = pidsOf(await readyReplicas(heddle).catch(() => []));
    return JSON.stringify(pids) === JSON.stringify(enginePids) ? true : undefined;
  });
}
