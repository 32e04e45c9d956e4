/**
 * Control with a join port and a router, each a process under its own permission set, and boxes on
 * which nothing of Heddle is installed: what brings the agent there is the script that it prints.
 */
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { createIssuing } from "@heddle/common/pki";
import type { ProgramSpec } from "../../tools/up/processes/children.ts";
import { CLUSTER, openAuthority } from "../../tools/up/layout/certificates.ts";
import { type Laid, layOut } from "../../tools/up/layout/layout.ts";
import { layPorts } from "../../tools/up/layout/ports.ts";
import { eventually, type Finished, ROOT, runCommand } from "./heddle.ts";

const HOUR_MS = 3_600_000;
/** Beyond what layPorts uses below the agents' ports. */
const JOIN_PORT = 6;
const ENGINE_PORT = 200;

export interface AttachedReplica {
  readonly replica_id: string;
  readonly state: string;
  readonly reason: string;
  readonly address: string;
  readonly attached: {
    readonly state: string;
    readonly provider: string;
    readonly host_id: string;
    readonly cards: number | null;
    readonly nvlinks: { readonly up: number; readonly expected: number } | null;
  } | null;
}

export class AttachFleet implements AsyncDisposable {
  readonly #laid: Laid;
  readonly #state: string;
  readonly #port: number;
  readonly #running = new Map<string, Deno.ChildProcess>();

  private constructor(laid: Laid, { state, port }: { state: string; port: number }) {
    this.#laid = laid;
    this.#state = state;
    this.#port = port;
  }

  static async start(
    place: { state: string; port: number },
    catalog: string,
  ): Promise<AttachFleet> {
    await Deno.mkdir(join(place.state, "logs"));
    const laid = await layOut({
      bin: join(ROOT, "bin"),
      state: place.state,
      plan: { nodes: [], catalog: { text: catalog } },
      ports: layPorts(0, place.port),
      logFormat: "text",
    });
    const fleet = new AttachFleet(laid, place);
    try {
      await fleet.#begin();
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
    return fleet;
  }

  async #begin(): Promise<void> {
    const folder = join(this.#state, "control");
    const root = await openAuthority(join(this.#state, "ca"));
    const below = { cluster: CLUSTER, validMs: HOUR_MS, now: Date.now(), fleet: true };
    const fleet = await createIssuing(root, below);
    const issuing = {
      certificate_file: join(folder, "fleet.pem"),
      key_file: join(folder, "fleet-key.pem"),
    };
    await Deno.writeTextFile(issuing.certificate_file, fleet.certificatePem);
    await Deno.writeTextFile(issuing.key_file, fleet.keyPem);
    const config = join(folder, "control.yaml");
    await Deno.writeTextFile(
      config,
      stringify({
        ...parse(await Deno.readTextFile(config)),
        join: { listen: `127.0.0.1:${this.#port + JOIN_PORT}` },
        issuing,
        timing: { attach_lease: "6s" },
      }),
    );
    this.startControl();
    this.#spawn("router", this.#laid.router);
    await eventually(
      "control leads",
      async () => (await this.ctl("version", "--json")).code === 0 || undefined,
    );
  }

  startControl(): void {
    this.#spawn("control", this.#laid.control);
  }

  /** `kill -9`. */
  async killControl(): Promise<void> {
    const process = this.#running.get("control");
    this.#running.delete("control");
    process?.kill("SIGKILL");
    await process?.status;
  }

  get openaiUrl(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  get enginePort(): number {
    return this.#port + ENGINE_PORT;
  }

  /** What every box is told. */
  async boxEnvironment(deployment: string): Promise<Record<string, string>> {
    const { code, stdout, stderr } = await this.ctl("join-tokens", "create", deployment, "--json");
    if (code !== 0) throw new Error(`ctl join-tokens failed: ${stderr}`);
    const { token } = JSON.parse(stdout);
    return {
      HEDDLE_JOIN_TOKEN: token,
      HEDDLE_CONTROL_URL: `https://127.0.0.1:${this.#port + JOIN_PORT}`,
      HEDDLE_DENO: Deno.execPath(),
    };
  }

  ctl(...args: string[]): Promise<Finished> {
    return runCommand(join(ROOT, "bin/heddle"), args, {
      HEDDLE_CTL_CONFIG: this.#laid.ctlConfig,
      HEDDLE_DENO: Deno.execPath(),
    });
  }

  async replica(id: string): Promise<AttachedReplica | undefined> {
    const { code, stdout, stderr } = await this.ctl("replicas", "--json");
    if (code !== 0) throw new Error(`ctl replicas failed: ${stderr}`);
    const replicas: AttachedReplica[] = JSON.parse(stdout);
    return replicas.find(({ replica_id }) => replica_id === id);
  }

  log(program: "control" | "router"): Promise<string> {
    return Deno.readTextFile(this.#laid[program].logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.#running.values()) {
      try {
        process.kill("SIGTERM");
      } catch {
        // It has ended already.
      }
      await process.status;
    }
  }

  #spawn(name: string, spec: ProgramSpec): void {
    const process = new Deno.Command(spec.launcher, {
      args: [...spec.args],
      env: { ...spec.env, HEDDLE_LOG_FILE: spec.logFile },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    this.#running.set(name, process);
  }
}
