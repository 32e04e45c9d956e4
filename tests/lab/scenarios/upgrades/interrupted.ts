/**
 * Plays as they go on a bad day: as somebody who is not root, on machines with unusual names, cut
 * short in the middle, with a machine or control lost on the way. Run again, each ends as it should.
 */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { type Fleet, fleetOf, GIANT, prepareFleet, releaseOfLab } from "../../fleet.ts";
import type { Lab } from "../../lab.ts";
import { writeNextRelease } from "../../next_release.ts";
import type { Scenario } from "../../scenario.ts";
import { Traffic } from "../../traffic.ts";
import { waitFor } from "../../wait_for.ts";

export const interrupted: Scenario = {
  title: "plays that are cut short, or lose a machine on the way, are taken up where they stopped",
  limitMs: 3_000_000,
  prepare: prepareFleet,
  run,
};

/** What the inventory calls gpu-b-1. */
const ODD = "GPU-B-1.Example";
const NODES = ["gpu-a-1", "gpu-a-2", "gpu-b-1"];

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("five machines boot, which root may not enter", async () => {
    const values = { heddle_upgrade_soak_s: 5, heddle_control_extra: { timing: { lost: "5m" } } };
    const fleet = await fleetOf(lab, { catalog: GIANT, values });
    await enterAsOps(fleet);
    return fleet;
  });
  await lab.step("site.yml is cut short, and the next one ends well", async () => {
    await fleet.cutShort(/TASK \[agent : Write the unit\]/, "site.yml");
    await fleet.play("site.yml");
    const nodes = await fleet.nodes();
    deepEqual(nodes.map(({ name, state }) => [name, state]), [
      [ODD, "ready"],
      ["gpu-a-1", "ready"],
      ["gpu-a-2", "ready"],
    ]);
  });
  const engines = await fleet.ready("giant");
  const traffic = await Traffic.start(fleet, "giant", 2);
  const step = (name: string, work: () => Promise<void>) =>
    lab.step(name, async () => {
      const served = traffic.served;
      await work();
      deepEqual(await fleet.ready("giant"), engines);
      deepEqual(traffic.failures, []);
      ok(traffic.served > served);
    });
  try {
    await step("what was written and not put into effect is, by the next run", () => {
      return writtenOnly(fleet);
    });
    await step("one machine alone is not upgraded before control", () => alone(lab, fleet));
    await step(
      "an upgrade goes on that is cut short between two routers, and in a node",
      async () => {
        const next = await releaseOf(lab, "0.1.2");
        await fleet.cutShort(
          /RUNNING HANDLER \[router : Wait until it serves\]/,
          "upgrade.yml",
          ...next,
        );
        await fleet.cutShort(/TASK \[agent : Write agent\.yaml\]/, "upgrade.yml", ...next);
        await fleet.play("upgrade.yml", ...next);
        await expectAll(fleet, "0.1.2");
      },
    );
    await step("a node that is lost on the way stops it, and is the only one left", async () => {
      await nodeLost(lab, fleet);
    });
    await step(
      "a control that cannot be asked stops it at the first node, which is put back",
      async () => {
        await controlLost(lab, fleet);
      },
    );
  } finally {
    await traffic.stop();
  }
  await lab.step("every answer that was begun has come to its end", () => {
    lab.say(`         ${traffic.served} requests in all, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
    return Promise.resolve();
  });
}

/** Ansible comes as a user who may sudo, and one node has another name than it calls itself. */
async function enterAsOps(fleet: Fleet): Promise<void> {
  for (const node of fleet.lab.nodes) {
    await node.sh(`useradd --create-home --shell /bin/bash ops
install -d -o ops -g ops -m 0700 /home/ops/.ssh
mv /root/.ssh/authorized_keys /home/ops/.ssh/authorized_keys
chown ops:ops /home/ops/.ssh/authorized_keys
echo 'ops ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ops`);
  }
  const file = join(fleet.folder, "inventory.ini");
  const inventory = (await Deno.readTextFile(file)).replaceAll("gpu-b-1", ODD);
  await Deno.writeTextFile(file, `${inventory}\n[heddle:vars]\nansible_user=ops\n`);
}

async function releaseOf(lab: Lab, version: string): Promise<readonly string[]> {
  const to = join(lab.folder, version);
  await writeNextRelease({ from: releaseOfLab(), to, version });
  return ["--extra-vars", JSON.stringify({ heddle_dists: { x86_64: to } })];
}

async function writtenOnly(fleet: Fleet): Promise<void> {
  const started = () =>
    fleet.node("gpu-a-1").sh("systemctl show --property=InvocationID --value heddle-agent");
  const change = ["--extra-vars", JSON.stringify({ heddle_engine_env: { NCCL_DEBUG: "WARN" } })];
  const before = await started();
  await fleet.cutShort(/TASK \[agent : Write the unit\]/, "site.yml", ...change);
  match(await fleet.node("gpu-a-1").read("/etc/heddle/agent.yaml"), /NCCL_DEBUG/);
  equal(await started(), before);
  await fleet.play("site.yml", ...change);
  notEqual(await started(), before);
}

async function alone(lab: Lab, fleet: Fleet): Promise<void> {
  const next = await releaseOf(lab, "0.1.9");
  const { code, stdout } = await fleet.attempt("upgrade.yml", "--limit", "gpu-a-2", ...next);
  notEqual(code, 0);
  match(
    stdout.replaceAll(/\s+/g, " "),
    /control-1 has 0\.1\.0 and the release is 0\.1\.9: nothing is ever newer than control/,
  );
  equal(await currentOf(fleet, "gpu-a-2"), "0.1.0");
  await Deno.remove(join(lab.folder, "0.1.9"), { recursive: true });
}

async function nodeLost(lab: Lab, fleet: Fleet): Promise<void> {
  const next = await releaseOf(lab, "0.1.3");
  const node = fleet.node("gpu-b-1");
  const { code, stdout } = await fleet.attemptWhile(
    ["upgrade.yml", ...next],
    /PLAY \[Nodes\]/,
    () => node.link("down"),
  );
  await node.link("up");
  notEqual(code, 0);
  match(stdout, /fatal: \[GPU-B-1\.Example\]: UNREACHABLE!/);
  deepEqual(await Promise.all(NODES.map((name) => currentOf(fleet, name))), [
    "0.1.3",
    "0.1.3",
    "0.1.2",
  ]);
  await reached(fleet, ODD);
  const changes = await fleet.changesOf("upgrade.yml", ...next);
  deepEqual(Object.keys(changes), [ODD]);
  await expectAll(fleet, "0.1.3");
}

async function controlLost(lab: Lab, fleet: Fleet): Promise<void> {
  const next = await releaseOf(lab, "0.1.4");
  const control = fleet.node("control-1");
  const { code, stdout } = await fleet.attemptWhile(
    ["upgrade.yml", ...next],
    /TASK \[agent : Write agent\.yaml\]/,
    async () => {
      await control.sh("systemctl stop ssh; ps -C sshd -o pid= | xargs --no-run-if-empty kill");
    },
  );
  await control.sh("systemctl start ssh");
  notEqual(code, 0);
  const told = stdout.replaceAll(/\s+/g, " ");
  match(told, /gpu-a-1 is back on 0\.1\.3; nothing else was upgraded after it/);
  match(told, /0\.1\.4 failed there: control-1 cannot be reached to ask control/);
  deepEqual(await Promise.all(NODES.map((name) => currentOf(fleet, name))), [
    "0.1.3",
    "0.1.3",
    "0.1.3",
  ]);
}

async function reached(fleet: Fleet, node: string): Promise<void> {
  await waitFor(`control hears ${node} again`, async () => {
    return (await fleet.nodes()).some(({ name, state }) => name === node && state === "ready");
  }, 60_000);
}

async function expectAll(fleet: Fleet, version: string): Promise<void> {
  const nodes = await fleet.nodes();
  deepEqual(nodes.map(({ agent_version }) => agent_version), nodes.map(() => version));
}

async function currentOf(fleet: Fleet, name: string): Promise<string> {
  return (await fleet.node(name).sh("readlink /opt/heddle/current")).replace("releases/", "");
}
