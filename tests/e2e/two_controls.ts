/**
 * Two controls on one PostgreSQL, a router and an agent, each a process under its own permission set,
 * from the files that `up` would write for one.
 */
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { PostgresServer } from "../../control/edge/store/postgres/server_fake.ts";
import type { ProgramSpec } from "../../tools/up/processes/children.ts";
import { stopEngines } from "../../tools/up/processes/cluster.ts";
import { type Laid, layOut } from "../../tools/up/layout/layout.ts";
import { layPorts } from "../../tools/up/layout/ports.ts";
import { eventually, type Finished, type Replica, ROOT, runCommand } from "./heddle.ts";

export type ControlName = "a" | "b";

/** How long after its last word a control that was killed is replaced. */
const LEASE = "3s";
/** Beyond what layPorts uses below the agents' ports. */
const SECOND_PORTS = { agents: 6, admin: 7, metrics: 8, console: 9 } as const;

/** What ctl says of the control that it reached. */
export interface Leading {
  readonly name: string;
  readonly term: number;
}

export class TwoControls implements AsyncDisposable {
  readonly server: PostgresServer;
  readonly #laid: Laid;
  readonly #specs: Readonly<Record<ControlName, ProgramSpec>>;
  readonly #running = new Map<string, Deno.ChildProcess>();
  readonly #port: number;

  private constructor(parts: {
    server: PostgresServer;
    laid: Laid;
    specs: Readonly<Record<ControlName, ProgramSpec>>;
    port: number;
  }) {
    this.server = parts.server;
    this.#laid = parts.laid;
    this.#specs = parts.specs;
    this.#port = parts.port;
  }

  /** Lays everything out and starts it; `a` leads. */
  static async start(
    place: { state: string; port: number },
    catalog: string,
  ): Promise<TwoControls> {
    const server = await PostgresServer.start();
    await Deno.mkdir(join(place.state, "logs"));
    const bin = join(ROOT, "bin");
    const sim = { name: "sim", path: join(bin, "heddle-sim") };
    const laid = await layOut({
      bin,
      state: place.state,
      plan: {
        nodes: [{ name: "n1", engines: [sim], described: undefined, modelDirs: [] }],
        catalog: { text: catalog },
      },
      ports: layPorts(1, place.port),
      logFormat: "text",
    });
    const specs = { a: laid.control, b: await second(laid.control, place) };
    const { address, database, user } = server.settings;
    for (const name of ["a", "b"] as const) {
      await edit(configOf(specs[name]), {
        name,
        store: {
          postgres: { address: `${address.host}:${address.port}`, database, user },
        },
        timing: { lease: LEASE },
      });
    }
    const agents = [place.port + 2, place.port + SECOND_PORTS.agents];
    const urls = agents.map((port) => `https://127.0.0.1:${port}`);
    const { control } = await read(configOf(laid.router));
    await edit(configOf(laid.router), { control: { ...Object(control), urls } });
    for (const agent of laid.agents) await edit(configOf(agent), { control: urls });
    await edit(laid.ctlConfig, {
      contexts: (await contexts(laid.ctlConfig)).map((context) => ({
        ...context,
        url: [place.port + 3, place.port + SECOND_PORTS.admin].map((port) =>
          `https://127.0.0.1:${port}`
        ),
      })),
    });
    const heddle = new TwoControls({ server, laid, specs, port: place.port });
    try {
      await heddle.#begin();
    } catch (error) {
      const log = await heddle.log("a").catch(() => "");
      await heddle[Symbol.asyncDispose]();
      throw new Error(`${error}\n${log}`, { cause: error });
    }
    return heddle;
  }

  async #begin(): Promise<void> {
    this.startControl("a");
    await eventually("a leads", async () => (await this.leading())?.name === "a" || undefined);
    this.startControl("b");
    this.#spawn("router", this.#laid.router);
    for (const agent of this.#laid.agents) this.#spawn("agent", agent);
  }

  get openaiUrl(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  startControl(name: ControlName): void {
    this.#spawn(name, this.#specs[name]);
  }

  /** Ends a control, and waits until it is gone. */
  async endControl(name: ControlName, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const process = this.#running.get(name);
    this.#running.delete(name);
    process?.kill(signal);
    await process?.status;
  }

  /** Runs ctl, which knows both controls. */
  ctl(...args: string[]): Promise<Finished> {
    return runCommand(join(ROOT, "bin/heddle"), args, {
      HEDDLE_CTL_CONFIG: this.#laid.ctlConfig,
      HEDDLE_DENO: Deno.execPath(),
    });
  }

  /** Which control leads; undefined while none does. */
  async leading(): Promise<Leading | undefined> {
    const { code, stdout } = await this.ctl("version", "--json");
    return code === 0 ? JSON.parse(stdout) : undefined;
  }

  async replicas(): Promise<Replica[]> {
    const { code, stdout, stderr } = await this.ctl("replicas", "--json");
    if (code !== 0) throw new Error(`ctl replicas failed: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** The log of a control. */
  log(name: ControlName): Promise<string> {
    return Deno.readTextFile(this.#specs[name].logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of ["router", "agent"]) await this.#end(name);
    for (const agent of this.#laid.agents) await stopEngines(agent);
    for (const name of [...this.#running.keys()]) await this.#end(name);
    await this.server[Symbol.asyncDispose]();
  }

  async #end(name: string): Promise<void> {
    const process = this.#running.get(name);
    this.#running.delete(name);
    try {
      process?.kill("SIGTERM");
    } catch {
      // It has ended already.
    }
    await process?.status;
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

/** Another control beside the first: its own folder and ports, the same certificate and catalog. */
async function second(
  first: ProgramSpec,
  { state, port }: { state: string; port: number },
): Promise<ProgramSpec> {
  const [from, folder] = [join(state, "control"), join(state, "control-b")];
  for (const part of ["", "tls"]) {
    await Deno.mkdir(join(folder, part), { mode: 0o700 });
    for await (const { name, isFile } of Deno.readDir(join(from, part))) {
      if (isFile) await Deno.copyFile(join(from, part, name), join(folder, part, name));
    }
  }
  const config = join(folder, "control.yaml");
  const text = await Deno.readTextFile(config);
  await Deno.writeTextFile(config, text.replaceAll(`${from}/`, `${folder}/`));
  const listen = (offset: number) => ({ listen: `127.0.0.1:${port + offset}` });
  await edit(config, {
    agents: listen(SECOND_PORTS.agents),
    admin: listen(SECOND_PORTS.admin),
    metrics: listen(SECOND_PORTS.metrics),
    console: listen(SECOND_PORTS.console),
    state_directory: folder,
  });
  return {
    ...first,
    label: "control b",
    args: first.args.map((arg) => arg === join(from, "control.yaml") ? config : arg),
    env: { ...first.env, HEDDLE_STATE: folder, HEDDLE_READ: folder },
    logFile: join(state, "logs", "control-b.log"),
  };
}

function configOf({ args }: ProgramSpec): string {
  return args[args.indexOf("--config") + 1] ?? "";
}

async function read(file: string): Promise<Record<string, unknown>> {
  return parse(await Deno.readTextFile(file));
}

async function contexts(file: string): Promise<Record<string, unknown>[]> {
  const { contexts } = parse(await Deno.readTextFile(file));
  return contexts;
}

async function edit(file: string, parts: Record<string, unknown>): Promise<void> {
  await Deno.writeTextFile(file, stringify({ ...await read(file), ...parts }));
}
