/** The disk that the machine boots from: the nodes' file system, a release, and what it is to do. */
import { join } from "node:path";
import { stringify } from "yaml";
import { ROOT } from "../../../tools/repository.ts";
import { runCommand } from "../command.ts";

/** What a model's engine does, the model's name with `_`, and the limit that a drop-in sets its units. */
export const MODELS = [
  { model: "eat", does: "eat", limits: ["MemoryMax=200M", "MemorySwapMax=0"] },
  { model: "child_eats", does: "child_eats", limits: ["MemoryMax=200M", "MemorySwapMax=0"] },
  { model: "limited_pin", does: "pin", limits: ["LimitMEMLOCK=64K"] },
  { model: "pin", does: "pin", limits: [] },
] as const;

const ENGINE = "/opt/lab/engine";
const DISK_MIB = 1_536;

/** Writes the disk at `disk`, by way of `folder`, which must not exist yet. */
export async function writeDisk(
  { base, release, folder, disk }: {
    readonly base: string;
    readonly release: string;
    readonly folder: string;
    readonly disk: string;
  },
): Promise<void> {
  await runCommand(["cp", "--archive", base, folder]);
  await runCommand(["cp", "--archive", release, join(folder, "opt/heddle")]);
  const write = async (path: string, text: string, mode = 0o644) => {
    const at = join(folder, path);
    await Deno.mkdir(join(at, ".."), { recursive: true });
    await Deno.writeTextFile(at, text, { mode });
  };
  for (const name of ["engine", "check"]) {
    const text = await Deno.readTextFile(join(ROOT, `tests/lab/vm/${name}.sh`));
    await write(`opt/lab/${name}`, text, 0o755);
  }
  for (const [path, document] of Object.entries(CONFIGURATIONS)) {
    await write(`etc/heddle/${path}`, stringify(document));
  }
  const units = "etc/systemd/system";
  for (const [unit, text] of Object.entries(UNITS)) {
    await write(`${units}/${unit}`, `${text}\n[Install]\nWantedBy=multi-user.target\n`);
    await Deno.mkdir(join(folder, units, "multi-user.target.wants"), { recursive: true });
    await Deno.symlink(`../${unit}`, join(folder, units, "multi-user.target.wants", unit));
  }
  for (const { model, limits } of MODELS) {
    const dropIn = `heddle-engine-${model.replaceAll("_", "-")}-.service.d/lab.conf`;
    if (limits.length > 0) await write(`${units}/${dropIn}`, `[Service]\n${limits.join("\n")}\n`);
  }
  const user = [...["--system", "--no-create-home", "--shell=/usr/sbin/nologin"], "heddle-engine"];
  await runCommand(["useradd", `--root=${folder}`, ...user]);
  await runCommand(["truncate", `--size=${DISK_MIB}M`, disk]);
  await runCommand(["mke2fs", "-q", "-t", "ext4", "-d", folder, disk], { limitMs: 300_000 });
}

const CONFIGURATIONS: Readonly<Record<string, unknown>> = {
  "catalog.yaml": {
    models: MODELS.map(({ model, does }) => ({
      name: model,
      source: "none",
      scaling: { min: 1, max: 1 },
      profiles: [{ name: "p", engine: "sim", env: { LAB_DOES: does } }],
    })),
  },
  "control.yaml": { cluster: "lab" },
  "agent.yaml": {
    node: "node-1",
    control: ["http://127.0.0.1:7443"],
    address: "127.0.0.1",
    engines: [{ name: "sim", path: ENGINE }],
    launcher: "systemd",
  },
  "ctl.yaml": { current: "lab", contexts: [{ name: "lab", url: "http://127.0.0.1:9090" }] },
};

const UNITS: Readonly<Record<string, string>> = {
  "heddle-control.service": `[Service]
Type=exec
ExecStart=/opt/heddle/bin/heddle-control
StateDirectory=heddle/control
StateDirectoryMode=0700
`,
  "heddle-agent.service": `[Service]
Type=exec
ExecStart=/opt/heddle/bin/heddle-agent
Restart=on-failure
KillMode=mixed
StateDirectory=heddle/agent
StateDirectoryMode=0700
SupplementaryGroups=heddle-engine
BindReadOnlyPaths=/sys:/run/heddle/sys
BindReadOnlyPaths=-/dev/kmsg:/run/heddle/kmsg
`,
  "lab-check.service": `[Unit]
After=heddle-agent.service

[Service]
ExecStart=/opt/lab/check
`,
};
