/** From a measurement to what the fleet carries, with the commands that an operator has for it. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { eventually, Heddle, type Replica, reserve } from "./heddle.ts";

const CATALOG = `
# two profiles, so that weights say something
models:
  - name: demo
    aliases: [default]
    source: demo
    scaling: { min: 2, max: 4 }
    profiles:
      - { name: fast, engine: sim, memory: 1GiB, args: [--sim-decode-tokens-per-s, "200"] }
      - { name: slow, engine: sim, memory: 1GiB, args: [--sim-decode-tokens-per-s, "50"] }
`;

/** Short levels, and a shape that answers at once: what is tried is the way, not the figure. */
const QUICK = [
  "--shape",
  "short.jsonl",
  "--seconds",
  "1",
  "--max",
  "2",
  "--ttft",
  "20s",
  "--tpot",
  "5s",
];

Deno.test("a replica is measured, stored, reckoned with, and its weight set", async (t) => {
  await using place = await reserve();
  const catalog = join(place.state, "catalog.yaml");
  await Deno.writeTextFile(catalog, CATALOG);
  await using heddle = await Heddle.start(place, ["--catalog", catalog]);
  const shape = join(place.state, "short.jsonl");
  await Deno.writeTextFile(shape, '{"prompt_tokens":20,"output_tokens":4}\n');
  const quick = QUICK.map((word) => word === "short.jsonl" ? shape : word);
  const does = async (...args: string[]) => {
    const { code, stdout, stderr } = await heddle.ctl(...args);
    equal(code, 0, `${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  const [replica] = await eventually("two replicas are ready", async () => {
    const all: Replica[] = JSON.parse((await heddle.ctl("replicas", "--json")).stdout || "[]");
    return all.filter(({ state }) => state === "ready").length === 2 ? all : undefined;
  });
  ok(replica);

  await t.step("before anybody measured, nothing is made up", async () => {
    const [said] = JSON.parse(await does("capacity", "default", "--shape", shape, "--json"));
    deepEqual([said.bottleneck, said.now_per_second], ["not_measured", 0]);
    match(await does("capacity", "demo"), /\tnot measured\t/);
  });

  await t.step("one replica is measured, whatever routers would choose, and stored", async () => {
    const out = await does("bench", "demo", "--replica", replica.replica_id, "--json", ...quick);
    const { best, stored } = JSON.parse(out);
    if (stored === null) return; // On a machine without time to spare nothing repeats.
    equal(stored.profile, replica.profile);
    ok(Math.abs(stored.requests_per_second - best.goodput) < 1e-9);
    const [said] = JSON.parse(await does("capacity", "demo", "--shape", shape, "--json"));
    const row = said.profiles.find((each: { profile: string }) => each.profile === replica.profile);
    equal(row.measured.requests_per_second, stored.requests_per_second);
    equal(said.now_per_second, row.ready_replicas * stored.requests_per_second);
    match(await does("audit"), /./);
  });

  await t.step("what is not there is not measured", async () => {
    const { code, stderr } = await heddle.ctl("bench", "demo", "--profile", "none", ...quick);
    equal(code, 1);
    match(stderr, /No replica of profile "none" of demo is ready; these are: /);
    const half = await heddle.ctl("capacity", "demo", "--shape", shape, "--apply", "--yes");
    equal(half.code, 1);
    match(half.stderr, /was never measured for short\.jsonl\. heddle bench demo --profile /);
  });

  await t.step("top shows the moment, events what has happened", async () => {
    match(await does("top"), /^up: |: .*GPUs used\n/);
    const { models } = JSON.parse(await does("top", "--json"));
    equal(models[0].model, "demo");
    const events = JSON.parse(await does("events", "--json"));
    ok(events.some((each: { kind: string; text: string }) => /ready/.test(each.text)));
  });

  await t.step("config says which context counts, and makes another one count", async () => {
    const [only] = JSON.parse(await does("config", "--json"));
    equal(only.current, true);
    match(
      await does("config", "use", only.name),
      new RegExp(`^${only.name} is the current context`),
    );
    equal((await heddle.ctl("config", "use", "nowhere")).code, 1);
    await does("nodes");
  });
});
