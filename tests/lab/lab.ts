/** A lab: nodes on a network of their own. It lives in the namespaces of one scenario's process. */
import { join } from "node:path";
import { errorText } from "@heddle/proto/error";
import type { FixtureNode } from "../../tools/fleet/fixture_spec.ts";
import { runCommand } from "./command.ts";
import { describeHardware } from "./machine/hardware.ts";
import { LAB_ADDRESS, makeBridge, makeNodeNetwork, NODES_MAX } from "./machine/network.ts";
import { type Bind, LabNode } from "./node.ts";
import type { StepResult } from "./run/result.ts";

/** Room for what all nodes write. It is memory that is used only as far as it is written to. */
const DISK = "4G";

/** Of the lab, where nothing of another run is to be seen. */
const PLACE = "/run/lab";

export interface LabOptions {
  /** The nodes' file system. */
  readonly base: string;
  /** Folder that outlives the run: consoles and journals. */
  readonly artefacts: string;
  readonly cgroup: string;
  readonly say: (line: string) => void;
  /** True where a scenario is to leave out what costs time and is proved by its other steps. */
  readonly quick: boolean;
}

export interface NodeSpec {
  readonly name: string;
  /** GPUs and adapters that are described, not there; none when left out. */
  readonly hardware?: FixtureNode;
  readonly binds?: readonly Bind[];
}

export class Lab implements AsyncDisposable {
  readonly address = LAB_ADDRESS;
  /** Folder for a scenario's own files; gone with the lab. */
  readonly folder = join(PLACE, "files");
  readonly steps: StepResult[] = [];
  readonly #options: LabOptions;
  readonly #nodes: LabNode[] = [];
  #publicKey = "";
  #step: string | undefined;

  private constructor(options: LabOptions) {
    this.#options = options;
  }

  /** Call it once in a process that has namespaces of its own. */
  static async open(options: LabOptions): Promise<Lab> {
    // Everything that programs leave in /run, locks and named namespaces too, ends with the lab.
    await runCommand(["mount", "-t", "tmpfs", "-o", `size=${DISK}`, "lab", "/run"]);
    const lab = new Lab(options);
    await Deno.mkdir(lab.folder, { recursive: true });
    await Deno.mkdir(options.artefacts, { recursive: true });
    await makeBridge();
    await runCommand(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", lab.sshKeyFile]);
    lab.#publicKey = await Deno.readTextFile(`${lab.sshKeyFile}.pub`);
    return lab;
  }

  get sshKeyFile(): string {
    return join(PLACE, "ssh-key");
  }

  get knownHostsFile(): string {
    return join(PLACE, "known-hosts");
  }

  /** Where a node's described hardware lies: `sys/` and `nvidia-smi`. The node sees what changes. */
  hardwareFolder(node: string): string {
    return join(PLACE, "nodes", node, "hardware");
  }

  get quick(): boolean {
    return this.#options.quick;
  }

  get nodes(): readonly LabNode[] {
    return this.#nodes;
  }

  /** The step that goes on now. */
  get currentStep(): string | undefined {
    return this.#step;
  }

  say(line: string): void {
    this.#options.say(line);
  }

  /** One step of a scenario: named, timed and told. */
  async step<T>(name: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    this.#step = name;
    const tell = (failure: string | undefined) => {
      this.#step = undefined;
      const ms = performance.now() - startedAt;
      this.steps.push({ name, ms, failure });
      this.say(
        `  ${failure === undefined ? "ok    " : "FAILED"} ${(ms / 1_000).toFixed(1)} s  ${name}`,
      );
    };
    try {
      const result = await work();
      tell(undefined);
      return result;
    } catch (error) {
      tell(errorText(error));
      throw error;
    }
  }

  /** Makes nodes; they are off. */
  async make(...specs: readonly NodeSpec[]): Promise<readonly LabNode[]> {
    const made: LabNode[] = [];
    for (const spec of specs) made.push(await this.#make(spec));
    const hosts = [
      "127.0.0.1 localhost",
      `${LAB_ADDRESS} lab`,
      ...this.#nodes.map(({ name, address }) => `${address} ${name}`),
    ];
    for (const node of this.#nodes) await node.write("/etc/hosts", `${hosts.join("\n")}\n`);
    await this.#writeKnownHosts();
    return made;
  }

  /** Makes nodes and boots them, all at once. */
  async boot(...specs: readonly NodeSpec[]): Promise<readonly LabNode[]> {
    const nodes = await this.make(...specs);
    await Promise.all(nodes.map((node) => node.boot()));
    return nodes;
  }

  /** Saves a text where it outlives the run. */
  async keep(name: string, text: string): Promise<void> {
    await Deno.writeTextFile(join(this.#options.artefacts, name), text);
  }

  /** Saves what tells of a failure, and ends every node. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#nodes.map(async (node) => {
      if (!node.isUp) return;
      try {
        const file = join(this.#options.artefacts, `${node.name}.journal`);
        await Deno.writeTextFile(file, await node.journal());
      } catch (error) {
        this.say(`Cannot save the journal of ${node.name}: ${errorText(error)}`);
      } finally {
        await node.powerCut();
      }
    }));
  }

  async #make({ name, hardware, binds }: NodeSpec): Promise<LabNode> {
    const index = this.#nodes.length;
    if (index >= NODES_MAX) throw new Error(`A lab has at most ${NODES_MAX} nodes`);
    if (!/^[a-z][a-z0-9-]{0,30}$/.test(name)) throw new Error(`"${name}" is no host name`);
    const folder = join(PLACE, "nodes", name);
    const root = join(folder, "root");
    for (const part of ["upper", "work", "root"]) {
      await Deno.mkdir(join(folder, part), { recursive: true });
    }
    const layers = `lowerdir=${this.#options.base},upperdir=${folder}/upper,workdir=${folder}/work`;
    await runCommand(["mount", "-t", "overlay", "-o", layers, "overlay", root]);
    await makeNodeNetwork(name, index);
    const described = hardware === undefined
      ? []
      : await describeHardware(this.hardwareFolder(name), { node: name, ...hardware });
    const node = new LabNode({
      name,
      index,
      root,
      binds: [...binds ?? [], ...described],
      cgroup: `${this.#options.cgroup}/${name}`,
      consoleFile: join(this.#options.artefacts, `${name}.console`),
      sshOptions: this.sshOptions,
    });
    await node.write("/etc/hostname", `${name}\n`);
    await node.write("/etc/machine-id", `${crypto.randomUUID().replaceAll("-", "")}\n`);
    await Deno.mkdir(join(root, "root/.ssh"), { recursive: true, mode: 0o700 });
    await node.write("/root/.ssh/authorized_keys", this.#publicKey, 0o600);
    this.#nodes.push(node);
    return node;
  }

  /** How `ssh` gets into the nodes. */
  get sshOptions(): readonly string[] {
    return [
      "-F",
      "none",
      "-o",
      `IdentityFile=${this.sshKeyFile}`,
      "-o",
      "IdentitiesOnly=yes",
      "-o",
      `UserKnownHostsFile=${this.knownHostsFile}`,
      "-o",
      "BatchMode=yes",
      "-o",
      "ConnectTimeout=10",
    ];
  }

  // All nodes have the host key of the base: it is made with the package, and tells nothing here.
  async #writeKnownHosts(): Promise<void> {
    const key = await Deno.readTextFile(
      join(this.#options.base, "etc/ssh/ssh_host_ed25519_key.pub"),
    );
    const lines = this.#nodes.map(({ name, address }) => `${name},${address} ${key.trim()}\n`);
    await Deno.writeTextFile(this.knownHostsFile, lines.join(""));
  }
}
