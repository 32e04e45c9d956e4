/** What operators decide with ctl: it outlives control, and no request notices. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { eventually, Heddle, type Replica, reserve } from "./heddle.ts";
import { startTraffic } from "./traffic.ts";

const CATALOG = `
models:
  - name: demo
    aliases: [default]
    source: demo
    scaling: { min: 2, max: 4 }
    profiles: [{ name: sim, engine: sim, args: [--max-model-len, "8192"] }]
`;

Deno.test("operators' decisions outlive control, and cost no request", async (t) => {
  await using place = await reserve();
  const catalog = join(place.state, "catalog.yaml");
  await Deno.writeTextFile(catalog, CATALOG);
  await using heddle = await Heddle.start(place, ["--catalog", catalog]);
  const [node] = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
  const does = async (...args: string[]) => {
    const { code, stdout, stderr } = await heddle.ctl(...args);
    equal(code, 0, stderr);
    return stdout;
  };
  const before = await ready(heddle, 2);

  await t.step("kill -9 control: what was decided holds, with who and why", async () => {
    match(await does("nodes", "label", node.name, "rack=r1"), /has rack=r1\*/);
    match(await does("models", "scale", "default", "2", "--reason", "launch"), /held at 2, 2\/2/);
    match(await does("models", "pause", "demo", "--reason", "audit"), /demo is paused/);
    const [old] = await heddle.pids("control");
    await heddle.killProgram("control");
    const decisions = await eventually("control answers again", async () => {
      const [now] = await heddle.pids("control");
      if (now === undefined || now === old) return undefined;
      const { code, stdout } = await heddle.ctl("decisions", "--json");
      return code === 0 ? JSON.parse(stdout) : undefined;
    });
    deepEqual(
      decisions.map((each: Record<string, unknown>) => [
        each["kind"],
        each["subject"],
        each["value"],
        each["by"],
        each["reason"],
      ]),
      [
        ["labels", node.name, "rack=r1", "", ""],
        ["pause", "demo", "", "up", "audit"],
        ["scale", "demo", "2", "up", "launch"],
      ],
    );
    const after = await ready(heddle, 2);
    deepEqual(after.map(({ replica_id: id }) => id), before.map(({ replica_id: id }) => id));
    match(await does("models"), /held at 2 paused/);
  });

  await t.step("without a terminal nothing is stopped that nobody said yes to", async () => {
    const [first] = before;
    ok(first);
    const refused = await heddle.ctl("replicas", "stop", first.replica_id);
    equal(refused.code, 1);
    match(refused.stderr, /^Not done: .*--yes\n$/);
    await does("models", "resume", "demo");
    await does("models", "scale", "demo", "--clear");
  });

  await t.step(
    "a replica is restarted, another one stopped, under traffic: no request fails",
    async () => {
      const [first, second] = before;
      ok(first && second);
      const traffic = startTraffic(heddle.openaiUrl, { clients: 4, model: "demo", maxTokens: 20 });
      try {
        await does("replicas", "restart", first.replica_id, "--yes", "--reason", "leaks");
        await gone(heddle, first);
        await does("replicas", "stop", second.replica_id, "--yes");
        await gone(heddle, second);
        await ready(heddle, 2);
      } finally {
        await traffic.stop();
      }
      deepEqual(traffic.endings.filter(({ kind }) => kind !== "ok"), []);
      ok(traffic.endings.length > 0);
    },
  );

  await t.step("the audit trail has it all, newest first", async () => {
    const records = JSON.parse(await does("audit", "--json"));
    deepEqual(
      records.map((each: Record<string, unknown>) => `${each["action"]} ${each["by"]}`),
      ["stop", "restart", "clear_scale", "resume", "pause", "scale", "label"]
        .map((action) => `${action} up`),
    );
  });
});

async function ready(heddle: Heddle, count: number): Promise<Replica[]> {
  return await eventually(`${count} replicas are ready`, async () => {
    const all = await heddle.replicas().catch(() => []);
    const good = all.filter(({ state }) => state === "ready");
    return good.length === count && all.length === count ? good : undefined;
  });
}

async function gone(heddle: Heddle, { replica_id: id }: Replica): Promise<void> {
  await eventually(`${id} is gone`, async () => {
    const all = await heddle.replicas().catch(() => undefined);
    return all !== undefined && all.every((each) => each.replica_id !== id) ? true : undefined;
  });
}
