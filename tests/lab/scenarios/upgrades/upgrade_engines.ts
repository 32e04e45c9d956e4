/** Another version of an engine on every node, one at a time, under traffic; and one that does not run. */
import { deepEqual, equal, match, notEqual } from "node:assert/strict";
import { join } from "node:path";
import { z } from "zod";
import { type Fleet, fleetOf, prepareFleet } from "../../fleet.ts";
import type { Lab } from "../../lab.ts";
import type { Scenario } from "../../scenario.ts";
import { Traffic } from "../../traffic.ts";
import { waitFor } from "../../wait_for.ts";

export const upgradeEngines: Scenario = {
  title:
    "an engine is replaced node by node under traffic: no request fails; a bad one stops there",
  limitMs: 1_800_000,
  prepare: prepareFleet,
  run,
};

const PATH = "/opt/engines/sim/bin/sim";
const NODES: readonly string[] = ["gpu-a-1", "gpu-a-2", "gpu-b-1"];

/** Two copies, and a node more than they need. */
const CATALOG = `models:
  - name: small
    source: demo
    scaling: { min: 2, max: 2 }
    profiles:
      - { name: one-gpu, engine: sim, gpu_class: h100-80g }
`;

const enginesSchema = z.array(z.object({
  name: z.string(),
  inventory: z.object({
    engines: z.array(z.object({ name: z.string(), version: z.string() })),
  }).nullable(),
}));

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step(
    "a fleet with an engine of the operator's is onboarded",
    async () => {
      const fleet = await fleetOf(lab, {
        catalog: CATALOG,
        values: { heddle_engines: [{ name: "sim", path: PATH }] },
      });
      for (const node of NODES) await fleet.node(node).write(PATH, engineOf("1.0.0"), 0o755);
      await fleet.play("site.yml");
      await twoReady(fleet);
      return fleet;
    },
  );
  deepEqual(await versions(fleet), { "gpu-a-1": "1.0.0", "gpu-a-2": "1.0.0", "gpu-b-1": "1.0.0" });
  const good = await tasksOf(lab, "2.0.0", engineOf("2.0.0"));
  const upgrade = (file: string, version: string) => [
    ...["--extra-vars", `heddle_engine_tasks=${file}`],
    ...["--extra-vars", "engine=sim", "--extra-vars", `version=${version}`],
  ];
  await lab.step("without saying which, nothing is done", async () => {
    const { code, stdout } = await fleet.attempt("upgrade_engines.yml");
    notEqual(code, 0);
    match(stdout, /Name a file of tasks, the engine and its version/);
  });
  await underTraffic(lab, fleet, "every node gets the next version, and serves on", async () => {
    await fleet.play("upgrade_engines.yml", ...upgrade(good, "2.0.0"));
    deepEqual(await versions(fleet), {
      "gpu-a-1": "2.0.0",
      "gpu-a-2": "2.0.0",
      "gpu-b-1": "2.0.0",
    });
    await allReady(fleet);
  });
  await underTraffic(
    lab,
    fleet,
    "a run that is cut short is taken up, and cordons stay",
    async () => {
      await fleet.heddle("cordon", "gpu-b-1", "--reason", "a fan is loud");
      const again = await tasksOf(lab, "2.1.0", engineOf("2.1.0"));
      const args = ["upgrade_engines.yml", ...upgrade(again, "2.1.0")] as const;
      await fleet.cutShort(/TASK \[engines : Let the agent look/, ...args);
      await fleet.play(...args);
      deepEqual(await versions(fleet), {
        "gpu-a-1": "2.1.0",
        "gpu-a-2": "2.1.0",
        "gpu-b-1": "2.1.0",
      });
      deepEqual((await fleet.nodes()).map(({ state }) => state), ["ready", "ready", "cordoned"]);
      await fleet.heddle("uncordon", "gpu-b-1");
      await fleet.play("upgrade_engines.yml", ...upgrade(good, "2.0.0"));
      await allReady(fleet);
    },
  );
  await lab.step("a second run changes nothing", async () => {
    deepEqual(await fleet.changesOf("upgrade_engines.yml", ...upgrade(good, "2.0.0")), {});
  });
  await underTraffic(lab, fleet, "one that does not run stops at the first node", async () => {
    const bad = await tasksOf(lab, "3.0.0", "#!/bin/sh\nexit 1\n");
    const args = [...upgrade(bad, "3.0.0"), "--extra-vars", "engine_timeout_s=20"];
    const { code, stdout } = await fleet.attempt("upgrade_engines.yml", ...args);
    notEqual(code, 0);
    match(stdout, /gpu-a-1: control does not see sim 3\.0\.0 there/);
    const { "gpu-a-1": first, ...others } = await versions(fleet);
    deepEqual([first, others], [undefined, { "gpu-a-2": "2.0.0", "gpu-b-1": "2.0.0" }]);
    await allReady(fleet);
  });
  await underTraffic(lab, fleet, "and the good one again puts it right", async () => {
    await fleet.play("upgrade_engines.yml", ...upgrade(good, "2.0.0"));
    equal((await versions(fleet))["gpu-a-1"], "2.0.0");
    await allReady(fleet);
  });
}

/** The simulated engine, calling itself by another version. */
function engineOf(version: string): string {
  return `#!/bin/sh
if [ "$1" = --version ]; then echo "sim ${version}"; exit; fi
exec /opt/heddle/current/bin/heddle-sim "$@"
`;
}

/** A file of tasks as an operator writes it, which installs an engine with this text. */
async function tasksOf(lab: Lab, version: string, content: string): Promise<string> {
  const file = join(lab.folder, `sim-${version}.yml`);
  const copy = { content, dest: PATH, mode: "0755" };
  const tasks = [{ name: `Install sim ${version}`, "ansible.builtin.copy": copy }];
  await Deno.writeTextFile(file, JSON.stringify(tasks));
  return file;
}

async function versions(fleet: Fleet): Promise<Readonly<Record<string, string | undefined>>> {
  const nodes = enginesSchema.parse(JSON.parse(await fleet.heddle("nodes", "--json")));
  const sorted = nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return Object.fromEntries(sorted.map(({ name, inventory }) => {
    return [name, inventory?.engines.find((engine) => engine.name === "sim")?.version];
  }));
}

async function twoReady(fleet: Fleet): Promise<void> {
  await waitFor("two replicas are ready", async () => {
    return (await fleet.replicas()).filter(({ state }) => state === "ready").length === 2;
  }, 90_000);
}

/** Every node takes part, and so do both replicas. */
async function allReady(fleet: Fleet): Promise<void> {
  await twoReady(fleet);
  deepEqual((await fleet.nodes()).map(({ state }) => state), ["ready", "ready", "ready"]);
}

async function underTraffic(
  lab: Lab,
  fleet: Fleet,
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  await lab.step(name, async () => {
    const traffic = await Traffic.start(fleet, "small", 3);
    try {
      await work();
    } finally {
      await traffic.stop();
    }
    lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
  });
}
