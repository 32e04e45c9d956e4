/** Everything that is wrong with a fleet is told at once, machine by machine, and nothing is done. */
import { equal, match, notEqual } from "node:assert/strict";
import type { FixtureNode } from "../../../tools/fleet/fixture_spec.ts";
import { type Fleet, fleetOf, GIANT, H100, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";

export const preflight: Scenario = {
  title: "what is wrong with machines is told in words, all of it, before anything is changed",
  limitMs: 900_000,
  prepare: prepareFleet,
  run,
};

/** A cable is out of one adapter, and the other has been set to Ethernet. */
const BROKEN: FixtureNode = {
  ...H100,
  hcas: [
    { name: "mlx5_0", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)", state: "1: DOWN" },
    { name: "mlx5_1", linkLayer: "Ethernet", rate: "400 Gb/sec (4X NDR)" },
  ],
};

/** One adapter has another name here than the inventory says, and the other is slow. */
const RENAMED: FixtureNode = {
  ...H100,
  hcas: [
    { name: "mlx5_7", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)" },
    { name: "mlx5_1", linkLayer: "InfiniBand", rate: "100 Gb/sec (4X EDR)" },
  ],
};

const WORDS: readonly RegExp[] = [
  /router-1: port 8080 is taken by python3, pid \d+: Heddle wants it/,
  /control-1: \/opt has 0\.\d GiB free: want 0\.5 GiB/,
  /gpu-a-1: .*mlx5_0/,
  /gpu-a-1: .*mlx5_1.*(?:link layer|Ethernet)/i,
  /gpu-a-2: .*mlx5_0 is not on this node/,
  /gpu-a-2: .*mlx5_1.*100/,
  /gpu-b-1: .*(?:PCI bus shows|nvidia-smi)/,
  /gpu-b-1: there are 0 GPUs, 0 of them without a problem: want 8/,
  /gpu-a-1 and gpu-a-2 have one \/etc\/machine-id/,
];

/** What would be there after anything but a look. */
const CHANGED = ["/opt/heddle", "/etc/heddle", "/var/lib/heddle", "/tmp/heddle-preflight-*"];

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("five machines boot, none of them as it should be", async () => {
    const hardware = { "gpu-a-1": BROKEN, "gpu-a-2": RENAMED };
    const fleet = await fleetOf(lab, { catalog: GIANT, hardware });
    await spoil(fleet);
    return fleet;
  });
  const told = await lab.step("preflight refuses them", async () => {
    const { code, stdout } = await fleet.attempt("site.yml", "--tags", "preflight");
    notEqual(code, 0);
    return stdout.replaceAll(/\s+/g, " ");
  });
  for (const words of WORDS) {
    await lab.step(`it says ${words.source}`, () => Promise.resolve(match(told, words)));
  }
  await lab.step("site.yml goes no further, and nothing was changed", async () => {
    const { code, stdout } = await fleet.attempt("site.yml");
    notEqual(code, 0);
    match(stdout, /PLAY \[Preflight\]/);
    equal(/PLAY \[Everywhere\]/.test(stdout), false);
    for (const node of lab.nodes) {
      equal(await node.sh(`ls -d ${CHANGED.join(" ")} 2>/dev/null || true`), "", node.name);
    }
  });
}

async function spoil(fleet: Fleet): Promise<void> {
  await fleet.node("router-1").sh(
    "systemd-run --quiet --unit=squatter python3 -m http.server 8080",
  );
  await fleet.node("control-1").sh("mount -t tmpfs -o size=64m small /opt");
  await fleet.node("gpu-b-1").sh("umount /usr/bin/nvidia-smi && rm -f /usr/bin/nvidia-smi");
  const id = await fleet.node("gpu-a-1").read("/etc/machine-id");
  await fleet.node("gpu-a-2").write("/etc/machine-id", id);
}
