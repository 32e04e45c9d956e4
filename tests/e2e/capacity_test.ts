/** From a measurement to what the fleet carries, with the commands that an operator has for it. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { CapacityService } from "@heddle/proto/gen/capacity";
import { withTransport } from "../../ctl/client.ts";
import { loadContext } from "../../ctl/config.ts";
import { eventually, Heddle, type Replica, reserve } from "./heddle.ts";

const FAST = "{ name: fast, engine: sim, memory: 1GiB, args: [--sim-decode-tokens-per-s, 200] }";
const SLOW = "{ name: slow, engine: sim, memory: 1GiB, args: [--sim-decode-tokens-per-s, 50] }";

const catalogOf = (count: number, ...profiles: string[]) => `
# who wrote this comment wants it back
models:
  - name: demo
    aliases: [default]
    source: demo
    scaling: { min: ${count}, max: 4 }
    profiles:
${profiles.map((profile) => `      - ${profile}\n`).join("")}`;

/** Short levels, and promises that hold: what is tried is the way, not the figure. */
const QUICK = ["--seconds", "1", "--max", "2", "--ttft", "20s", "--tpot", "5s"];

Deno.test("a replica is measured, stored, reckoned with, and its weight set", async (t) => {
  await using place = await reserve();
  const file = join(place.state, "catalog.yaml");
  await Deno.writeTextFile(file, catalogOf(1, SLOW));
  await using heddle = await Heddle.start(place, ["--catalog", file]);
  const shape = join(place.state, "short.jsonl");
  await Deno.writeTextFile(shape, '{"prompt_tokens":20,"output_tokens":4}\n');
  const does = async (...args: string[]) => {
    const { code, stdout, stderr } = await heddle.ctl(...args);
    equal(code, 0, `${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  const both = join(place.state, "both.yaml");
  await Deno.writeTextFile(both, catalogOf(2, FAST, SLOW));
  await does("apply", both);
  const ready = await eventually("a replica of each profile is ready", async () => {
    const all: Replica[] = JSON.parse((await heddle.ctl("replicas", "--json")).stdout || "[]");
    const those = all.filter(({ state }) => state === "ready");
    return new Set(those.map(({ profile }) => profile)).size === 2 ? those : undefined;
  });
  const replicaOf = (profile: string) => {
    const found = ready.find((each) => each.profile === profile);
    ok(found);
    return found.replica_id;
  };

  await t.step("before anybody measured, nothing is made up", async () => {
    const [said] = JSON.parse(await does("capacity", "default", "--shape", shape, "--json"));
    deepEqual([said.bottleneck, said.now_per_second], ["not_measured", 0]);
    match(await does("capacity"), /\tnot measured\t/);
  });

  await t.step("the one replica that is asked for is measured, and no other", async () => {
    const only = replicaOf("slow");
    const args = ["--replica", only, "--shape", shape, "--no-store", "--json", ...QUICK];
    const { best, levels, stored } = JSON.parse(await does("bench", "demo", ...args));
    ok(best.goodput > 0);
    equal(stored, null);
    // Whoever else answers is told as a failure.
    deepEqual(levels.map(({ failed }: { failed: number }) => failed), levels.map(() => 0));
    const none = await heddle.ctl("bench", "demo", "--profile", "none", ...QUICK);
    match(none.stderr, /No replica of profile "none" of demo is ready; these are: /);
  });

  await t.step("what was measured is reckoned with, and sets the weights when asked", async () => {
    await record(heddle, replicaOf("slow"), 2);
    const half = await heddle.ctl("capacity", "demo", "--apply", "--yes");
    equal(half.code, 1);
    match(half.stderr, /fast was never measured for chat\. heddle bench demo --profile fast /);
    await record(heddle, replicaOf("fast"), 8);
    const [said] = JSON.parse(await does("capacity", "demo", "--json"));
    deepEqual([said.now_per_second, said.bottleneck], [10, "scaling_max"]);
    const refused = await heddle.ctl("capacity", "demo", "--apply");
    match(refused.stderr, /Not done: .*--yes/);
    match(
      await does("capacity", "demo", "--apply", "--yes"),
      /fast: weight 1 → 100\n.*slow: .* 25\n/,
    );
    const text = await does("catalog", "--text");
    match(text, /# who wrote this comment wants it back/);
    match(text, /name: fast,.* weight: 100 \}/);
    match(await does("capacity", "demo", "--apply", "--yes"), /are what was measured already/);
    const now: Replica[] = JSON.parse(await does("replicas", "--json"));
    deepEqual(now.map(({ replica_id: id }) => id), ready.map(({ replica_id: id }) => id));
  });

  await t.step("top shows the moment, events what has happened", async () => {
    match(await does("top"), /GPUs used\n\nMODEL .*\ndemo /);
    equal(JSON.parse(await does("top", "--json")).models[0].model, "demo");
    const events = JSON.parse(await does("events", "--json"));
    ok(
      events.some(({ subject, text }: { subject: string; text: string }) =>
        subject === replicaOf("fast") && /ready/.test(text)
      ),
    );
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

/** As bench does when it has found something stable, which a busy machine is not sure to give. */
async function record(heddle: Heddle, replica: string, requestsPerSecond: number): Promise<void> {
  const named = join(heddle.state, "ctl", "config.yaml");
  const context = await loadContext({ named, userConfig: undefined, repository: undefined }, {});
  await withTransport(
    context,
    (transport) =>
      createClient(CapacityService, transport).recordMeasurement({
        replicaIds: [replica],
        shape: "chat",
        ttftMs: 1_000,
        tpotMs: 100,
        requestsPerSecond,
        concurrency: 4,
        outputTokensPerSecond: 100,
        within: 1,
        spread: 0.01,
      }),
  );
}
