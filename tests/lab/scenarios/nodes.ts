/** The lab itself: what every other scenario builds on. */
import { equal, match, notEqual, ok } from "node:assert/strict";
import type { Lab } from "../lab.ts";
import type { LabNode } from "../node.ts";
import type { Scenario } from "../scenario.ts";
import { waitFor } from "../wait_for.ts";

export const nodes: Scenario = {
  title: "nodes boot, are reached over SSH, lose their link, are shut down and boot again",
  limitMs: 180_000,
  run,
};

async function run(lab: Lab): Promise<void> {
  const [one, two] = await lab.step("two nodes boot", () =>
    lab.boot({
      name: "gpu-1",
      hardware: {
        driver: "580.65.06",
        gpus: [{
          name: "NVIDIA H100 80GB HBM3",
          count: 8,
          memoryMib: 81559,
          computeCapability: "9.0",
        }],
        hcas: [{ name: "mlx5_0", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)" }],
        nvlink: "all",
      },
    }, { name: "plain" }));
  ok(one !== undefined && two !== undefined);
  await lab.step("systemd runs and nothing of it has failed", async () => {
    for (const node of lab.nodes) {
      equal(await node.sh("systemctl is-system-running || systemctl --failed"), "running");
    }
  });
  await lab.step("each is a machine of its own", () => differs(one, two));
  await lab.step("SSH gets in, and nodes know each other's names", async () => {
    for (const node of lab.nodes) {
      const { code, stdout, stderr } = await node.ssh("hostname; getent hosts gpu-1 plain lab");
      equal(code, 0, stderr);
      match(stdout, new RegExp(`^${node.name}\n`));
    }
  });
  await lab.step("there is no way out", async () => {
    equal(await one.sh("ip route show default"), "");
  });
  await lab.step("a described node shows its hardware where the agent's unit looks", async () => {
    match(await one.sh("nvidia-smi -L"), /H100/);
    const unit = [
      "--quiet",
      "--wait",
      "--pipe",
      "--property=BindReadOnlyPaths=/sys:/run/heddle/sys",
    ];
    const seen = await one.run([
      "systemd-run",
      ...unit,
      "cat",
      "/run/heddle/sys/class/infiniband/mlx5_0/ports/1/rate",
    ]);
    match(seen, /400 Gb/);
  });
  await lab.step("a pulled cable is a node that cannot be reached", async () => {
    await one.link("down");
    notEqual(await reaches(two, one), 0);
    await one.link("up");
    await waitFor("the link is back", async () => await reaches(two, one) === 0);
  });
  await lab.step("a node that was shut down boots again, with its files", async () => {
    await one.write("/root/kept", "yes\n");
    await one.poweroff();
    await one.boot();
    equal((await one.read("/root/kept")).trim(), "yes");
  });
  await lab.step("a node without power is gone at once, and boots again", async () => {
    await two.powerCut();
    ok(!two.isUp);
    await two.boot();
  });
}

async function differs(one: LabNode, two: LabNode): Promise<void> {
  for (const what of ["cat /etc/machine-id", "hostname", "hostname -I"]) {
    notEqual(await one.sh(what), await two.sh(what), what);
  }
}

async function reaches(from: LabNode, to: LabNode): Promise<number> {
  const script = 'exec 3<>"/dev/tcp/$1/22"';
  const { code } = await from.exec(["timeout", "1", "bash", "-c", script, "bash", to.address]);
  return code;
}
