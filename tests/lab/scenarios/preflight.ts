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

/**
 * Cut into pieces, and running without what it should: nothing of that keeps the agent from looking.
 * Engines get neither a whole GPU nor an adapter.
 */
const UNPREPARED: FixtureNode = {
  ...H100,
  gpus: H100.gpus.flatMap((group) => [
    {
      ...group,
      count: 1,
      cells: {
        "mig.mode.current": "Enabled",
        "mig.mode.pending": "Enabled",
        "persistence_mode": "Disabled",
      },
    },
    { ...group, count: 7 },
  ]),
  acsRedirects: true,
  rdmaDevices: "closed",
};

/** Switches that nobody has set up, adapters without device files, and the GUIDs of another node. */
const COPIED: FixtureNode = {
  ...H100,
  node: "gpu-b-2",
  gpus: H100.gpus.map((group) => ({
    ...group,
    cells: { "fabric.state": "In Progress", "fabric.status": "N/A" },
  })),
  nvswitches: 4,
  rdmaDevices: "none",
};

/** Each of these is refused. */
const WORDS: readonly RegExp[] = [
  /router-1: port 8080 is taken by python3, pid \d+: Heddle wants it/,
  /control-1: \/opt has 0\.\d GiB free: want 0\.5 GiB/,
  /gpu-a-1: .*mlx5_0/,
  /gpu-a-1: .*mlx5_1.*(?:link layer|Ethernet)/i,
  /gpu-a-2: .*mlx5_0 is not on this node/,
  /gpu-a-2: .*mlx5_1.*100/,
  /gpu-a-2: \/dev\/shm has 32 MiB: want 64 MiB/,
  /gpu-b-1: .*(?:PCI bus shows|nvidia-smi)/,
  /gpu-b-1: there are 0 GPUs, 0 of them without a problem: want 8/,
  /gpu-b-2: GPU 0: .*MIG/,
  /gpu-b-2: heddle-engine cannot read and write \/dev\/infiniband\/uverbs0 \(root:root, mode 0600\), \/dev\/infiniband\/uverbs1/,
  /gpu-b-3: GPU 0, 1, 2, 3, 4, 5, 6, 7: NVLink's fabric is not up: state "In Progress"/,
  /gpu-b-3: there are 4 NVSwitches, and the fabric manager does not run/,
  /gpu-b-3: mlx5_0, mlx5_1 cannot be opened by engines/,
  /gpu-b-4: has no Python 3 that runs: apt-get install python3/,
  /gpu-a-1 and gpu-a-2 have one \/etc\/machine-id/,
  /mlx5_0 of gpu-b-2 and mlx5_0 of gpu-b-3 have one GUID/,
];

/** Each of these is told, and refuses nothing. */
const CAUTIONS: readonly RegExp[] = [
  /Persistence mode is off on GPU 0/,
  /PCI ACS redirects requests at 0000:17:00\.0/,
  /heddle-engine cannot read and write \/dev\/infiniband\/rdma_cm/,
];

/** What would be there after anything but a look. */
const CHANGED = ["/opt/heddle", "/etc/heddle", "/var/lib/heddle", "/tmp/heddle-preflight-*"];

const CAP_SYS_RESOURCE = 24n;

const NODES = ["gpu-a-1", "gpu-a-2", "gpu-b-1", "gpu-b-2", "gpu-b-3", "gpu-b-4"];

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("eight machines boot, none of them as it should be", async () => {
    const hardware = {
      "gpu-a-1": BROKEN,
      "gpu-a-2": RENAMED,
      "gpu-b-2": UNPREPARED,
      "gpu-b-3": COPIED,
    };
    const fleet = await fleetOf(lab, { catalog: GIANT, hardware, nodes: NODES });
    await spoil(fleet);
    return fleet;
  });
  const told = await lab.step("preflight refuses them", async () => {
    const { code, stdout } = await fleet.attempt("site.yml", "--tags", "preflight");
    notEqual(code, 0);
    return spoken(stdout);
  });
  for (const words of WORDS) {
    await lab.step(`it says ${words.source}`, () => Promise.resolve(match(told, words)));
  }
  await lab.step("what keeps nothing from working is told beside it", async () => {
    const cautions = cautionsOf(told, "gpu-b-2");
    for (const words of CAUTIONS) match(cautions, words);
    equal(/may lock \d+ KiB/.test(cautions), await locksLittle(fleet), cautions);
  });
  await lab.step("site.yml goes no further, and nothing was changed", async () => {
    await fleet.node("router-1").link("down");
    const { code, stdout } = await fleet.attempt("site.yml");
    notEqual(code, 0);
    match(stdout, /PLAY \[Preflight\]/);
    match(spoken(stdout), /router-1: cannot be reached: .*gpu-a-1: /);
    equal(/PLAY \[Everywhere\]/.test(stdout), false);
    for (const node of lab.nodes) {
      equal(await node.sh(`ls -d ${CHANGED.join(" ")} 2>/dev/null || true`), "", node.name);
    }
  });
  await lab.step("two machines of one name or address are told before any is asked", async () => {
    const { code, stdout } = await underOneName(fleet);
    notEqual(code, 0);
    const told = spoken(stdout);
    match(told, /GPU-B-1 and gpu-b-1 have one name: names differ by more than case/i);
    match(told, /gpu-a-1 and gpu-z-1 have one address, 10\.\S+: want one machine, one name/);
    match(
      told,
      /gpu-z-1: heddle_agent_extra\.node is "gpu-a-2": a node is called as in the inventory/,
    );
    equal(/PLAY \[Preflight\]/.test(stdout), false);
  });
}

/** What Ansible printed, as one line, and without the quotes that its YAML doubles. */
function spoken(stdout: string): string {
  return stdout.replaceAll(/\s+/g, " ").replaceAll("''", "'");
}

/** What preflight tells of a machine beside what it refuses. */
function cautionsOf(told: string, node: string): string {
  const task = /TASK \[preflight : Tell what is worth knowing\].*?(?=TASK \[)/.exec(told)?.[0] ??
    "";
  return task.split("ok: [").find((each) => each.startsWith(`${node}]`)) ?? "";
}

/** Whether the node is a container that may not lift the bound of what its systemd may lock. */
async function locksLittle(fleet: Fleet): Promise<boolean> {
  const node = fleet.node("gpu-b-2");
  const limits = await node.read("/proc/1/limits");
  const rights = /^CapBnd:\s*([0-9a-f]+)/m.exec(await node.read("/proc/1/status"))?.[1] ?? "0";
  const mayLift = (BigInt(`0x${rights}`) >> CAP_SYS_RESOURCE & 1n) === 1n;
  return !mayLift && !/^Max locked memory\s+\S+\s+unlimited/m.test(limits);
}

/** The inventory with a node that goes by two names, and one that claims the name of another. */
async function underOneName(fleet: Fleet) {
  const file = `${fleet.folder}/inventory.ini`;
  const inventory = await Deno.readTextFile(file);
  const address = fleet.node("gpu-a-1").address;
  const extra = `heddle_agent_extra="{'node': 'gpu-a-2'}"`;
  const more = [`GPU-B-1 ansible_host=192.0.2.1`, `gpu-z-1 ansible_host=${address} ${extra}`];
  await Deno.writeTextFile(
    file,
    inventory.replace("[fabric_ib_b]\n", `[fabric_ib_b]\n${more.join("\n")}\n`),
  );
  try {
    return await fleet.attempt("site.yml");
  } finally {
    await Deno.writeTextFile(file, inventory);
  }
}

async function spoil(fleet: Fleet): Promise<void> {
  await fleet.node("router-1").sh(
    "systemd-run --quiet --unit=squatter python3 -m http.server 8080",
  );
  await fleet.node("control-1").sh("mount -t tmpfs -o size=64m small /opt");
  await fleet.node("gpu-a-2").sh("mount -o remount,size=32m /dev/shm");
  await fleet.node("gpu-b-1").sh("umount /usr/bin/nvidia-smi && rm -f /usr/bin/nvidia-smi");
  await fleet.node("gpu-b-4").sh("rm -f /usr/bin/python3*");
  const id = await fleet.node("gpu-a-1").read("/etc/machine-id");
  await fleet.node("gpu-a-2").write("/etc/machine-id", id);
}
