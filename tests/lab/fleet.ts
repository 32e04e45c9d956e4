/**
 * Machines as an operator has them: an inventory, the values that differ from the defaults, and
 * Ansible, which comes over SSH. What is asked of control goes through `heddle` on its machine.
 */
import { join } from "node:path";
import { z } from "zod";
import type { FixtureNode } from "../../tools/fleet/fixture_spec.ts";
import { parseBuildOptions } from "../../tools/build/options.ts";
import { writeRelease } from "../../tools/build/release.ts";
import { ROOT } from "../../tools/repository.ts";
import { NEWEST, OLDEST, openToolchain } from "../ansible/toolchain.ts";
import { attemptCommand, type Finished } from "./command.ts";
import type { Lab } from "./lab.ts";
import type { LabNode } from "./node.ts";
import { waitFor } from "./wait_for.ts";
import { watchCommand } from "./run/watched.ts";

/** Long enough for a machine that is busy with other things. */
const PLAY_MS_MAX = 900_000;

/** Those of ansible.cfg. */
const SSH_ARGS = "-o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=10 " +
  "-o ServerAliveCountMax=3";

export const H100: FixtureNode = {
  driver: "580.65.06",
  gpus: [{
    name: "NVIDIA H100 80GB HBM3",
    count: 8,
    memoryMib: 81559,
    computeCapability: "9.0",
  }],
  hcas: ["mlx5_0", "mlx5_1"].map((name) => ({
    name,
    linkLayer: "InfiniBand" as const,
    rate: "400 Gb/sec (4X NDR)",
  })),
  nvlink: "all",
};

const NODES: readonly string[] = ["gpu-a-1", "gpu-a-2", "gpu-b-1"];

/** The groups of a fleet with these nodes; which fabric a node is on, its name says. */
function groupsOf(controls: readonly string[], nodes: readonly string[]): string {
  const on = (fabric: string) =>
    nodes.filter((node) => node.startsWith(`gpu-${fabric}-`)).join("\n");
  return `[heddle_control]
${controls.join("\n")}

[heddle_routers]
router-1

[fabric_ib_a]
${on("a")}

[fabric_ib_b]
${on("b")}

[heddle_agents:children]
fabric_ib_a
fabric_ib_b

[heddle_canary]
gpu-a-1

[heddle:children]
heddle_control
heddle_routers
heddle_agents
`;
}

const nodeSchema = z.object({
  name: z.string(),
  state: z.string(),
  agent_version: z.string(),
  used_gpus: z.array(z.number()),
  /** Null for a node that has not registered since control started. */
  inventory: z.object({
    fabrics: z.array(z.object({ name: z.string(), degraded: z.boolean() })),
  }).nullable(),
});
const replicaSchema = z.object({
  replica_id: z.string(),
  model: z.string(),
  state: z.string(),
  fabric: z.string(),
  shards: z.array(z.object({
    shard_id: z.string(),
    node: z.string(),
    rank: z.number(),
    state: z.string(),
    pid: z.number().nullable(),
  })),
});

export interface FleetOptions {
  /** Text of the catalog. */
  readonly catalog: string;
  /** Hardware of nodes that have another than eight H100 and two working adapters. */
  readonly hardware?: Readonly<Record<string, FixtureNode>>;
  /** @default one, "control-1" */
  readonly controls?: readonly string[];
  /** Files that each control finds, by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Nodes by name, "gpu-a-…" on one fabric and "gpu-b-…" on the other. @default two and one */
  readonly nodes?: readonly string[];
  /** Values that differ from ansible/group_vars/all.yml. */
  readonly values?: Readonly<Record<string, unknown>>;
}

/** A model on two nodes of one fabric, and nowhere else. */
export const GIANT = `models:
  - name: giant
    source: demo
    profiles:
      - { name: two-nodes, engine: sim, gpu_class: h100-80g, tp: 8, pp: 2, nodes: 2 }
`;

/** From a placement to a ready replica, on a machine that is busy with other things. */
const READY_MS_MAX = 90_000;

/** The release under test: that of HEDDLE_DIST, or one made of this checkout. */
export function releaseOfLab(): string {
  return Deno.env.get("HEDDLE_DIST") ?? join(ROOT, ".heddle/lab/dist");
}

let made: Promise<void> | undefined;

/**
 * Makes the release, unless HEDDLE_DIST names one, and fetches Ansible. Call it where there is a
 * network.
 */
export async function prepareFleet(): Promise<void> {
  await openAnsible();
  if (Deno.env.get("HEDDLE_DIST") !== undefined) return;
  const machine = { root: ROOT, own: Deno.build.arch };
  // Once for all scenarios of a run: they are about the same programs.
  await (made ??= writeRelease(parseBuildOptions(["--out", releaseOfLab()], machine)));
}

/** HEDDLE_ANSIBLE=newest takes the newest. */
async function openAnsible(): Promise<string> {
  const newest = Deno.env.get("HEDDLE_ANSIBLE") === "newest";
  const toolchain = await openToolchain(newest ? NEWEST : OLDEST);
  if ("why" in toolchain) throw new Error(`There is no Ansible here: ${toolchain.why}`);
  return toolchain.bin;
}

/** Boots one control, one machine of routers, and three nodes on two fabrics. */
export async function fleetOf(lab: Lab, options: FleetOptions): Promise<Fleet> {
  const bin = await openAnsible();
  const nodes = options.nodes ?? NODES;
  const controls = options.controls ?? ["control-1"];
  const folder = join(lab.folder, "fleet");
  await Deno.mkdir(join(folder, "group_vars"), { recursive: true });
  await Deno.writeTextFile(join(folder, "catalog.yaml"), options.catalog);
  await Deno.writeTextFile(
    join(folder, "group_vars/heddle.yml"),
    JSON.stringify({
      heddle_cluster: "lab",
      heddle_catalog_file: join(folder, "catalog.yaml"),
      heddle_dists: { x86_64: releaseOfLab() },
      heddle_ca_folder: join(folder, "ca"),
      heddle_cache_folder: join(folder, "cache"),
      heddle_engines: [{ name: "sim", path: "/opt/heddle/current/bin/heddle-sim" }],
      heddle_fabric_defs: {
        fabric_ib_a: { name: "ib-a", link_layer: "infiniband", rate_gbps: 400, hcas: HCAS },
        fabric_ib_b: { name: "ib-b", link_layer: "infiniband", rate_gbps: 400, hcas: HCAS },
      },
      heddle_gpus_min: 8,
      // Nodes are files in memory here, and so small.
      heddle_disk_min_gib: { "/opt": 0.5, "/var/lib": 0.1 },
      ...options.values,
    }),
  );
  await lab.boot(
    ...controls.map((name) => ({ name })),
    { name: "router-1" },
    ...nodes.map((name) => ({
      name,
      hardware: options.hardware?.[name] ?? H100,
    })),
  );
  for (const node of lab.nodes.filter(({ name }) => controls.includes(name))) {
    for (const [path, text] of Object.entries(options.files ?? {})) await node.write(path, text);
  }
  const hosts = lab.nodes.map(({ name, address }) => `${name} ansible_host=${address}\n`).join("");
  await Deno.writeTextFile(join(folder, "inventory.ini"), `${hosts}\n${groupsOf(controls, nodes)}`);
  return new Fleet(lab, { folder, bin });
}

const HCAS = ["mlx5_0", "mlx5_1"];

export class Fleet {
  readonly lab: Lab;
  readonly folder: string;
  readonly #bin: string;
  #plays = 0;
  #key: string | undefined;

  constructor(lab: Lab, { folder, bin }: { folder: string; bin: string }) {
    this.lab = lab;
    this.folder = folder;
    this.#bin = bin;
  }

  /** Runs a playbook to its end. Throws with what it printed when it fails. */
  async play(book: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.attempt(book, ...args);
    if (code !== 0) {
      throw new Error(`${book} ${args.join(" ")}: exit code ${code}\n${stdout}${stderr}`);
    }
    return stdout;
  }

  /** The same, whatever becomes of it. */
  attempt(book: string, ...args: readonly string[]): Promise<Finished> {
    return this.#playbook(book, args, (argv, env) => {
      return attemptCommand(argv, { limitMs: PLAY_MS_MAX, env });
    });
  }

  /** The same, and once it has said the words something happens to it, or to the fleet. */
  attemptWhile(
    [book = "", ...args]: readonly string[],
    words: RegExp,
    then: (kill: () => void) => void | Promise<void>,
  ): Promise<Finished> {
    return this.#playbook(book, args, (argv, env) => {
      return watchCommand(argv, { limitMs: PLAY_MS_MAX, env, words, then });
    });
  }

  /** Runs a playbook until it has said the words; then the controller is no more. */
  async cutShort(words: RegExp, book: string, ...args: readonly string[]): Promise<void> {
    const { code, stdout } = await this.attemptWhile([book, ...args], words, (kill) => kill());
    if (code === 0) throw new Error(`${book} was over before it could be cut short\n${stdout}`);
  }

  /** Runs a playbook and says how many tasks changed something, for each machine where any did. */
  async changesOf(book: string, ...args: readonly string[]): Promise<Record<string, string>> {
    const plain = await this.play(book, ...args);
    const found: Record<string, string> = {};
    for (const [, name = "", count = ""] of plain.matchAll(/^(\S+)\s+: ok=\d+\s+changed=(\d+)/gm)) {
      if (count !== "0") found[name] = `${count}: ${changedTasks(plain, name).join("; ")}`;
    }
    return found;
  }

  node(name: string): LabNode {
    const found = this.lab.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`There is no machine ${name}`);
    return found;
  }

  /** Runs `heddle` where it is installed: on a control's machine, which of several finds the leader. */
  async heddle(...args: readonly string[]): Promise<string> {
    const machine = this.lab.nodes.find(({ name }) => name.startsWith("control-"));
    if (machine === undefined) throw new Error("There is no control");
    return await machine.run(["/usr/local/bin/heddle", ...args]);
  }

  /** Control's view of the nodes, by name. */
  async nodes() {
    const text = await this.heddle("nodes", "--json");
    const nodes = z.array(nodeSchema).parse(JSON.parse(text));
    return nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async replicas() {
    const text = await this.heddle("replicas", "--json");
    return z.array(replicaSchema).parse(JSON.parse(text));
  }

  /** Pids of the model's only replica by node, once it is ready. */
  async ready(model: string): Promise<Readonly<Record<string, number | null>>> {
    const replica = await waitFor(`${model} is ready`, async () => {
      return (await this.replicas()).find((each) => each.model === model && each.state === "ready");
    }, READY_MS_MAX);
    return Object.fromEntries(replica.shards.map(({ node, pid }) => [node, pid]));
  }

  /** What clients show from now on, instead of the key that the playbook made. */
  useKey(key: string): void {
    this.#key = key;
  }

  async key(): Promise<string> {
    if (this.#key !== undefined) return this.#key;
    return `sk-heddle-${(await Deno.readTextFile(join(this.folder, "cache/openai.key"))).trim()}`;
  }

  /** One chat request, as a client sends it. */
  async ask(model: string, text: string, given: { key?: string } = {}): Promise<Finished> {
    const url = `http://${this.node("router-1").address}:8080/v1/chat/completions`;
    const response = await fetch(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${given.key ?? await this.key()}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ model, messages: [{ role: "user", content: text }], max_tokens: 16 }),
      signal: AbortSignal.timeout(30_000),
    });
    const stdout = await response.text();
    return { code: response.ok ? 0 : 1, stdout, stderr: response.ok ? "" : stdout };
  }

  async #playbook(
    book: string,
    args: readonly string[],
    start: (
      argv: readonly string[],
      env: Readonly<Record<string, string>>,
    ) => Promise<Finished>,
  ): Promise<Finished> {
    const ansible = join(ROOT, "ansible");
    const script = 'cd "$1" && shift && exec "$@"';
    const finished = await start([
      "/bin/sh",
      "-c",
      script,
      "sh",
      ansible,
      join(this.#bin, "ansible-playbook"),
      "--inventory",
      join(this.folder, "inventory.ini"),
      book,
      ...args,
    ], {
      ANSIBLE_SSH_ARGS: [
        ...this.lab.sshOptions,
        ...SSH_ARGS.split(" "),
      ].join(" "),
      ANSIBLE_SSH_CONTROL_PATH_DIR: join(this.folder, "cp"),
      ANSIBLE_REMOTE_USER: "root",
      ANSIBLE_NOCOLOR: "1",
      ANSIBLE_LOCAL_TEMP: join(this.folder, "tmp"),
    });
    const { code, stdout, stderr } = finished;
    const log = `${book} ${args.join(" ")}: exit code ${code}\n${stdout}${stderr}`;
    await this.lab.keep(`${++this.#plays}-${book}.log`, log);
    return finished;
  }
}

/** Names of the tasks that changed something on a machine. */
function changedTasks(output: string, machine: string): readonly string[] {
  let task = "";
  const found: string[] = [];
  for (const line of output.split("\n")) {
    task = /^(?:TASK|RUNNING HANDLER) \[(.*?)\]/.exec(line)?.[1] ?? task;
    if (line.startsWith(`changed: [${machine}`)) found.push(task);
  }
  return found;
}
