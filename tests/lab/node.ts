/** One node of the lab: a systemd of its own in a container, with a disk that forgets. */
import { dirname, join } from "node:path";
import { attemptCommand, type CommandOptions, type Finished, runCommand } from "./command.ts";
import { CGROUP_SCRIPT } from "./run/run_record.ts";
import { nodeAddress, setLink } from "./machine/network.ts";
import { waitFor } from "./wait_for.ts";

/** A folder or file of this machine that a node sees. */
export interface Bind {
  readonly from: string;
  /** Where the node sees it; the same path when left out. */
  readonly to?: string;
  readonly writable?: boolean;
}

/** Everything a node is made from. */
export interface NodeParts {
  readonly name: string;
  readonly index: number;
  /** Its root file system, mounted already. */
  readonly root: string;
  readonly binds: readonly Bind[];
  readonly cgroup: string;
  readonly consoleFile: string;
  readonly sshOptions: readonly string[];
}

export interface ExecOptions extends CommandOptions {
  /** User of the node who runs it; root when left out. */
  readonly user?: string;
}

/** 1.4 s alone; a busy machine boots many at once. */
const BOOT_MS_MAX = 60_000;
const POWEROFF_MS_MAX = 20_000;

// No line end in the first file: read says that it failed, and has read all the same.
const FIND_INIT = `read -r children <"/proc/$1/task/$1/children"
for each in $children; do
  while read -r name pids; do
    [ "$name" != NSpid: ] || [ "\${pids##*[!0-9]}" != 1 ] || echo "$each"
  done <"/proc/$each/status"
done 2>/dev/null`;

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export class LabNode {
  readonly name: string;
  readonly address: string;
  readonly #parts: NodeParts;
  #container: Deno.ChildProcess | undefined;
  #ended: Promise<Deno.CommandStatus> | undefined;
  /** Pid of the node's own pid 1, as this machine counts. */
  #init: string | undefined;

  constructor(parts: NodeParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.address = nodeAddress(parts.index);
  }

  get isUp(): boolean {
    return this.#container !== undefined;
  }

  /** Boots it and waits until systemd has started everything. Returns how long that took, in ms. */
  async boot(): Promise<number> {
    const startedAt = performance.now();
    const { name, root, cgroup, binds, consoleFile } = this.#parts;
    const container = new Deno.Command("/bin/sh", {
      args: [
        "-c",
        'console=$1; shift; exec "$@" </dev/null >>"$console" 2>&1',
        "sh",
        consoleFile,
        CGROUP_SCRIPT,
        "enter",
        cgroup,
        "systemd-nspawn",
        "--quiet",
        `--directory=${root}`,
        `--machine=${name}`,
        "--boot",
        // There is no machined here to tell of it, nor a unit to put it in.
        "--register=no",
        "--keep-unit",
        // It is the node's own network, which it may filter.
        "--capability=CAP_NET_ADMIN",
        `--network-namespace-path=/run/netns/${name}`,
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--console=pipe",
        ...binds.map(({ from, to, writable }) =>
          `--bind${writable === true ? "" : "-ro"}=${escapeBind(from)}:${escapeBind(to ?? from)}`
        ),
      ],
      stdin: "null",
    }).spawn();
    this.#container = container;
    this.#ended = container.status.then((status) => {
      this.#container = undefined;
      this.#init = undefined;
      return status;
    });
    this.#init = await this.#findInit(container.pid);
    await waitFor(`${name} has booted`, () => this.#hasBooted(), BOOT_MS_MAX);
    return performance.now() - startedAt;
  }

  /** Runs a program in the node, whatever its exit code. */
  exec(argv: readonly string[], options: ExecOptions = {}): Promise<Finished> {
    return attemptCommand(this.#inside(argv, options), withoutEnv(options));
  }

  /** Runs a program in the node and returns what it printed. Throws when it fails. */
  run(argv: readonly string[], options: ExecOptions = {}): Promise<string> {
    return runCommand(this.#inside(argv, options), withoutEnv(options));
  }

  /** Runs a line of shell in the node and returns what it printed, trimmed. Throws when it fails. */
  async sh(script: string, options: ExecOptions = {}): Promise<string> {
    return (await this.run(["/bin/sh", "-ec", script], options)).trim();
  }

  /** The same over the network, as Ansible comes. */
  ssh(script: string, options: CommandOptions = {}): Promise<Finished> {
    const { sshOptions } = this.#parts;
    return attemptCommand(["ssh", ...sshOptions, `root@${this.address}`, script], options);
  }

  /** Writes a file; folders on the way are made. Works before the node has booted too. */
  async write(path: string, content: string, mode = 0o644): Promise<void> {
    if (!this.isUp) {
      const file = join(this.#parts.root, path);
      await Deno.mkdir(dirname(file), { recursive: true });
      await Deno.writeTextFile(file, content, { mode });
      await Deno.chmod(file, mode);
      return;
    }
    const script = 'mkdir -p "$(dirname "$1")"; umask 077; cat >"$1"; chmod "$2" "$1"';
    await this.run(["/bin/sh", "-ec", script, "sh", path, mode.toString(8)], { input: content });
  }

  /** Copies a file or folder of this machine into the node. */
  async copy(from: string, to: string): Promise<void> {
    const archive = join(dirname(this.#parts.root), "copy.tar");
    await runCommand(["tar", "-C", from, "-cf", archive, "."]);
    const into = this.isUp ? this.#inside(["tar", "-C", to, "-xf", "-"], {}) : [
      "tar",
      "-C",
      join(this.#parts.root, to),
      "-xf",
      archive,
    ];
    if (!this.isUp) await Deno.mkdir(join(this.#parts.root, to), { recursive: true });
    else await this.run(["mkdir", "-p", to]);
    await runCommand(into, { input: await Deno.readFile(archive) });
    await Deno.remove(archive);
  }

  /** A file's text. Throws when it is not there. */
  read(path: string): Promise<string> {
    return this.run(["cat", path]);
  }

  /** Pulls the network cable out, or plugs it in. */
  link(state: "up" | "down"): Promise<void> {
    return setLink(this.#parts.index, state);
  }

  /** Shuts it down as an operator would, and waits. */
  async poweroff(): Promise<void> {
    await this.exec(["systemctl", "poweroff"]);
    await waitFor(`${this.name} is off`, () => !this.isUp, POWEROFF_MS_MAX);
  }

  /** Takes its power away: nothing in it is told. */
  async powerCut(): Promise<void> {
    // Without pid 1 the kernel ends everything else in the node, and nspawn after that.
    if (this.#init !== undefined) await attemptCommand(["kill", "-KILL", this.#init]);
    else this.#container?.kill("SIGKILL");
    await this.#ended;
  }

  /** What its systemd wrote down since it booted, or of one unit. */
  async journal(unit?: string): Promise<string> {
    const only = unit === undefined ? [] : ["--unit", unit];
    const { stdout } = await this.exec(["journalctl", "--no-pager", "--boot", ...only]);
    return stdout;
  }

  #inside(argv: readonly string[], options: ExecOptions): readonly string[] {
    if (this.#init === undefined) throw new Error(`${this.name} is off`);
    const environment = Object.entries({ PATH, HOME: "/root", LANG: "C.UTF-8", ...options.env });
    return [
      "nsenter",
      `--target=${this.#init}`,
      "--all",
      "--",
      "/usr/bin/env",
      "-i",
      ...environment.map(([name, value]) => `${name}=${value}`),
      ...(options.user === undefined ? [] : [
        "setpriv",
        `--reuid=${options.user}`,
        `--regid=${options.user === "nobody" ? "nogroup" : options.user}`,
        "--clear-groups",
        "--",
      ]),
      ...argv,
    ];
  }

  // nspawn has other children while it starts; the node's pid 1 is the one that calls itself so.
  async #findInit(pid: number): Promise<string> {
    return await waitFor(`${this.name} has a pid 1`, async () => {
      if (!this.isUp) throw new Error(`${this.name} does not start: ${await this.#console()}`);
      const { stdout } = await attemptCommand(["/bin/sh", "-c", FIND_INIT, "sh", String(pid)]);
      return stdout.trim() || undefined;
    }, BOOT_MS_MAX);
  }

  async #hasBooted(): Promise<boolean> {
    if (!this.isUp) throw new Error(`${this.name} ended: ${await this.#console()}`);
    const { stdout } = await this.exec(["systemctl", "is-system-running"]);
    return /^(?:running|degraded)\b/.test(stdout);
  }

  async #console(): Promise<string> {
    return (await Deno.readTextFile(this.#parts.consoleFile).catch(() => "")).slice(-2_000);
  }
}

function escapeBind(path: string): string {
  return path.replaceAll(/[\\:]/g, "\\$&");
}

// The environment is the program's in the node, not that of the one which gets there.
function withoutEnv({ input, limitMs }: ExecOptions): CommandOptions {
  return {
    ...(input === undefined ? {} : { input }),
    ...(limitMs === undefined ? {} : { limitMs }),
  };
}
