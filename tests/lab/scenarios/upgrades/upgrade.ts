/** To the next release under traffic: nobody notices, no engine is restarted; and back again. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { type Fleet, fleetOf, GIANT, prepareFleet, releaseOfLab } from "../../fleet.ts";
import type { Lab } from "../../lab.ts";
import { writeNextRelease } from "../../next_release.ts";
import type { Scenario } from "../../scenario.ts";
import { Traffic } from "../../traffic.ts";

export const upgrade: Scenario = {
  title: "control, routers and nodes are upgraded under traffic: no request fails, engines stay",
  limitMs: 2_400_000,
  prepare: prepareFleet,
  run,
};

const NEXT = "0.1.1";
const CLIENTS = 4;

const SMALL = `  - name: small
    source: demo
    profiles:
      - { name: one-gpu, engine: sim, gpu_class: h100-80g }
`;

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet is onboarded", async () => {
    const fleet = await fleetOf(lab, { catalog: GIANT, values: { heddle_upgrade_soak_s: 5 } });
    await fleet.play("site.yml");
    return fleet;
  });
  const first = await fleet.ready("giant");
  const from = releaseOfLab();
  const next = await writeNextRelease({ from, to: join(lab.folder, NEXT), version: NEXT });
  const refused = await lab.step("site.yml does not upgrade by accident", async () => {
    return await fleet.attempt("site.yml", "--extra-vars", distOf(next));
  });
  match(refused.stdout, /0\.1\.0 is installed and the release is 0\.1\.1: run upgrade\.yml/);
  equal(await fleet.node("gpu-a-1").sh("readlink /opt/heddle/current"), "releases/0.1.0");
  await underTraffic(lab, fleet, "everything is upgraded, nobody notices", async () => {
    await fleet.play("upgrade.yml", "--extra-vars", distOf(next));
    await expectVersion(fleet, NEXT);
    deepEqual(await fleet.ready("giant"), first);
  });
  if (lab.quick) return;
  await lab.step("a second run changes nothing", async () => {
    deepEqual(await fleet.changesOf("upgrade.yml", "--extra-vars", distOf(next)), {});
  });
  const started = await lab.step("the next version starts an engine of its own", async () => {
    const catalog = `${GIANT}${SMALL}`;
    // Where Ansible takes it from, and where control reads it.
    await Deno.writeTextFile(join(fleet.folder, "catalog.yaml"), catalog);
    await fleet.node("control-1").write("/etc/heddle/catalog.yaml", catalog);
    return await fleet.ready("small");
  });
  await underTraffic(lab, fleet, "and back again, with both engines", async () => {
    const back = JSON.stringify({ ...JSON.parse(distOf(from)), heddle_downgrade: true });
    await fleet.play("upgrade.yml", "--extra-vars", back);
    await expectVersion(fleet, "0.1.0");
    deepEqual(await fleet.ready("giant"), first);
    deepEqual(await fleet.ready("small"), started);
  });
}

function distOf(folder: string): string {
  return JSON.stringify({ heddle_dists: { x86_64: folder } });
}

async function underTraffic(
  lab: Lab,
  fleet: Fleet,
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  await lab.step(name, async () => {
    const traffic = await Traffic.start(fleet, "giant", CLIENTS);
    try {
      await work();
    } finally {
      await traffic.stop();
    }
    lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
    ok(traffic.served > 0);
  });
}

async function expectVersion(fleet: Fleet, version: string): Promise<void> {
  const nodes = await fleet.nodes();
  deepEqual(nodes.map((node) => node.agent_version), nodes.map(() => version));
}
