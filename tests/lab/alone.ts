/** Control and an agent on one node, straight from this checkout: what needs no fleet and no release. */
import { join } from "node:path";
import { stringify } from "yaml";
import { z } from "zod";
import { ROOT } from "../../tools/repository.ts";
import type { Lab } from "./lab.ts";
import type { LabNode } from "./node.ts";
import { SOURCE, SOURCE_ENV, sourceBinds } from "./source.ts";
import { waitFor } from "./wait_for.ts";

export const ENGINE_USER = "heddle-engine";
export const STATE = "/var/lib/heddle/agent";

const CTL_CONFIG = "/etc/heddle/ctl/config.yaml";

const replicaSchema = z.object({
  replica_id: z.string(),
  state: z.string(),
  reason: z.string(),
  shards: z.array(z.object({
    shard_id: z.string(),
    state: z.string(),
    pid: z.number().nullable(),
    message: z.string().optional(),
  })),
});
export type Replica = z.output<typeof replicaSchema>;

export interface AloneOptions {
  readonly catalog: unknown;
  /** Path, on the node, of what is told to be the engine; left out: agent.yaml names none. */
  readonly engine?: string;
  /** Which one it is told to be. @default "sim" */
  readonly engineName?: string;
  /** More of control.yaml. */
  readonly control?: Readonly<Record<string, unknown>>;
  /** More of agent.yaml. */
  readonly agent?: Readonly<Record<string, unknown>>;
}

/** Boots a node with the user for engines, and nothing started yet. */
export async function bootAlone(lab: Lab): Promise<LabNode> {
  const [node] = await lab.boot({ name: "gpu-1", binds: await sourceBinds() });
  if (node === undefined) throw new Error("The lab made no node");
  const user = ["--system", "--no-create-home", "--shell=/usr/sbin/nologin", ENGINE_USER];
  await node.run(["useradd", ...user]);
  return node;
}

/** Configures and starts control and the agent, which runs under the hardening of a real fleet. */
export async function startAlone(node: LabNode, options: AloneOptions): Promise<void> {
  const engineEnv = SOURCE_ENV;
  await node.write("/etc/heddle/catalog.yaml", stringify(options.catalog), 0o600);
  await node.write("/etc/heddle/control.yaml", stringify({ cluster: "lab", ...options.control }));
  await node.write(
    "/etc/heddle/agent.yaml",
    stringify({
      node: node.name,
      control: ["http://127.0.0.1:7443"],
      address: node.address,
      engines: options.engine === undefined
        ? []
        : [{ name: options.engineName ?? "sim", path: options.engine }],
      engine_env: engineEnv,
      launcher: "systemd",
      engine_user: ENGINE_USER,
      ...options.agent,
    }),
  );
  await node.write(
    CTL_CONFIG,
    stringify({ current: "lab", contexts: [{ name: "lab", url: "http://127.0.0.1:9090" }] }),
  );
  const hardening = await Deno.readTextFile(join(ROOT, "ansible/templates/hardening.j2"));
  await node.write("/etc/systemd/system/heddle-control.service", controlUnit());
  await node.write("/etc/systemd/system/heddle-agent.service", agentUnit(hardening));
  await node.run(["systemctl", "daemon-reload"]);
  await node.run(["systemctl", "start", "heddle-control.service", "heddle-agent.service"]);
}

/** What `heddle` prints for these arguments. Throws when it fails. */
export function ctl(node: LabNode, ...args: readonly string[]): Promise<string> {
  return node.run([join(SOURCE, "bin/heddle"), ...args], {
    env: { ...SOURCE_ENV, HEDDLE_CTL_CONFIG: CTL_CONFIG },
  });
}

export async function replicas(node: LabNode): Promise<readonly Replica[]> {
  return z.array(replicaSchema).parse(JSON.parse(await ctl(node, "replicas", "--json")));
}

/** The pid of the only replica's engine, once it is ready. */
export function readyPid(node: LabNode): Promise<number> {
  return waitFor("the replica is ready", async () => {
    const [replica, ...others] = await replicas(node).catch(() => []);
    const shard = replica?.shards[0];
    if (replica?.state !== "ready" || others.length > 0) return undefined;
    return shard?.pid ?? undefined;
  }, 60_000);
}

function environment(extra: Readonly<Record<string, string>> = {}): string {
  return Object.entries({ ...SOURCE_ENV, ...extra })
    .map(([name, value]) => `Environment=${name}=${value}\n`).join("");
}

function controlUnit(): string {
  return `[Service]
Type=exec
ExecStart=${SOURCE}/bin/heddle-control
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
StateDirectory=heddle/control
StateDirectoryMode=0700
${environment()}`;
}

function agentUnit(hardening: string): string {
  return `[Unit]
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${SOURCE}/bin/heddle-agent
Restart=on-failure
RestartSec=1
KillMode=mixed
TimeoutStopSec=15
StateDirectory=heddle/agent
StateDirectoryMode=0700
UMask=0077
SupplementaryGroups=${ENGINE_USER}
BindReadOnlyPaths=/sys:/run/heddle/sys
BindReadOnlyPaths=-/dev/kmsg:/run/heddle/kmsg
CapabilityBoundingSet=
SystemCallFilter=@system-service @pkey
SystemCallFilter=~@resources
SystemCallErrorNumber=EPERM
${environment()}${hardening}`;
}
