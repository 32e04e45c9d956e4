/** A control dies, and another one on the same PostgreSQL takes over: nobody outside notices. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { NO_POSTGRES, postgresBinaries } from "../../control/edge/store/postgres/server_fake.ts";
import { eventually, isAlive, type Replica, reserve } from "./heddle.ts";
import { startTraffic, type Traffic } from "./traffic.ts";
import { TwoControls } from "./two_controls.ts";

const CATALOG = `models:
  - name: demo
    source: demo
    scaling: { min: 2, max: 2 }
    profiles:
      - name: sim
        engine: sim
        args: [--max-model-len, "8192"]
`;
const MORE = `${CATALOG}  - name: more
    source: more
    profiles: [{ name: sim, engine: sim }]
`;

const ignore = postgresBinaries() === undefined;
const name = "two controls on PostgreSQL: one is killed, requests and engines go on";

Deno.test({ name: ignore ? `${name} (${NO_POSTGRES})` : name, ignore }, async (t) => {
  await using place = await reserve();
  await using heddle = await TwoControls.start(place, CATALOG);
  const engines = pidsOf(
    await eventually("two replicas are ready", async () => {
      const ready = await readyReplicas(heddle);
      return ready.length === 2 ? ready : undefined;
    }),
  );
  equal((await heddle.ctl("cordon", "n1", "--reason", "fan noise")).code, 0);

  await t.step(
    "kill -9 the leader under traffic: no request fails, no engine restarts",
    async () => {
      const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
      await served(traffic, 8);
      const killedAt = performance.now();
      await heddle.endControl("a", "SIGKILL");
      await eventually("b leads", async () => (await heddle.leading())?.name === "b" || undefined);
      const tookMs = performance.now() - killedAt;
      await adopted(heddle, engines);
      await served(traffic, 16);
      deepEqual(failures(await traffic.stop()), []);
      for (const pid of engines) ok(await isAlive(pid), `engine ${pid}`);
      equal((await heddle.leading())?.term, 2);
      ok(tookMs < 15_000, `b led after ${tookMs} ms`);
    },
  );

  await t.step("the cordon survives, with who said it and why", async () => {
    const [node] = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
    deepEqual([node.state, node.decided_by, node.decision_reason], ["cordoned", "up", "fan noise"]);
    equal((await heddle.ctl("uncordon", "n1")).code, 0);
  });

  await t.step("ctl plans and applies a catalog from a file", async () => {
    const file = join(place.state, "more.yaml");
    await Deno.writeTextFile(file, MORE);
    const plan = await heddle.ctl("plan", file);
    match(
      plan.stdout,
      /\+ more added\nWould start:\n {2}more: profile sim on n1\n2 replicas go on/,
    );
    const applied = await heddle.ctl("apply", file);
    match(applied.stdout, /^Applied as revision 2/, applied.stderr);
    await eventually(
      "the new model is ready too",
      async () => (await readyReplicas(heddle)).length === 3 || undefined,
    );
    await Deno.writeTextFile(file, "models: [{name: x}]\n");
    const wrong = await heddle.ctl("apply", file);
    equal(wrong.code, 1);
    match(wrong.stderr, /more\.yaml:1:10: models\[0\]\.source: /);
    await Deno.writeTextFile(file, "models: []\n");
    const empty = await heddle.ctl("apply", file);
    equal(empty.code, 1);
    match(empty.stderr, /Not applied: it has no models, .*--yes/);
  });

  await t.step(
    "the one that was killed comes back and stands by, and leads when b stops",
    async () => {
      const all = pidsOf(await readyReplicas(heddle));
      heddle.startControl("a");
      await eventually(
        "a stands by",
        async () => (await heddle.log("a")).includes('Standing by: control "b"') || undefined,
      );
      equal((await heddle.leading())?.name, "b");
      const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
      await served(traffic, 4);
      await heddle.endControl("b", "SIGTERM");
      await eventually("a leads", async () => (await heddle.leading())?.name === "a" || undefined);
      await adopted(heddle, all);
      deepEqual(failures(await traffic.stop()), []);
      const { stdout } = await heddle.ctl("models", "--json");
      deepEqual(JSON.parse(stdout).map((model: { name: string }) => model.name), ["demo", "more"]);
    },
  );

  await t.step("PostgreSQL goes away and comes back: requests and engines go on", async () => {
    const all = pidsOf(await readyReplicas(heddle));
    const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
    await served(traffic, 4);
    await heddle.server.kill();
    const refused = await eventually("a decision is refused", async () => {
      const { code, stderr } = await heddle.ctl("cordon", "n1");
      return code === 0 ? undefined : stderr;
    });
    match(refused, /Cannot/);
    deepEqual(pidsOf(await readyReplicas(heddle)), all);
    await heddle.server.resume();
    await eventually(
      "decisions are taken again",
      async () => (await heddle.ctl("cordon", "n1")).code === 0 || undefined,
    );
    await served(traffic, 4);
    deepEqual(failures(await traffic.stop()), []);
    deepEqual(pidsOf(await readyReplicas(heddle)), all);
    equal((await heddle.leading())?.name, "a");
  });
});

async function readyReplicas(heddle: TwoControls): Promise<Replica[]> {
  return (await heddle.replicas().catch(() => [])).filter(({ state }) => state === "ready");
}

function pidsOf(replicas: readonly Replica[]): number[] {
  return replicas.flatMap(({ shards }) => shards.map(({ pid }) => pid ?? 0)).toSorted();
}

function failures(endings: Traffic["endings"]): Traffic["endings"] {
  return endings.filter(({ kind }) => kind !== "ok");
}

/** Waits until `more` further requests have ended. */
async function served(traffic: Traffic, more: number): Promise<void> {
  const from = traffic.endings.length;
  await eventually(
    `${more} more requests end`,
    () => Promise.resolve(traffic.endings.length >= from + more || undefined),
  );
}

/** Waits until control shows the same engines as ready again. */
async function adopted(heddle: TwoControls, pids: readonly number[]): Promise<void> {
  await eventually(
    "the same engines are ready again",
    async () =>
      JSON.stringify(pidsOf(await readyReplicas(heddle))) === JSON.stringify(pids) || undefined,
  );
}
