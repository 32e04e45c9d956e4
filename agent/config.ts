/** The agent's configuration: `/etc/heddle/agent.yaml`, or a few flags. */
import { z } from "zod";
import { type Address, parseAddress } from "@heddle/common/address";
import { duration, parseDurationMs } from "@heddle/common/duration";
import { IDENTITY_NAME } from "@heddle/common/identity";
import { tlsFilesSchema } from "@heddle/common/mtls_files";
import { checkControlUrl } from "@heddle/common/rpc_client";
import { errorText } from "@heddle/proto/error";
import { isVariableName } from "./core/shell_env.ts";
import { ENGINE_NAMES } from "./engines/adapters.ts";
import { installsSchema } from "./installs/installs_config.ts";
import { weightsSchema } from "./weights/weights_config.ts";

/** HTTP, rendezvous and what engines open beside them; SGLang alone needs 246. */
const PORT_BLOCK_MIN = 16;

const ADOPT_READY_MS_MIN = 1_000;

const environment = () =>
  z.record(
    z.string().refine(isVariableName, "want a variable's name: letters, digits and _"),
    z.string(),
  ).default({});

const absolutePath = () =>
  z.string().refine(
    (path) => path.startsWith("/") && !path.includes("\n"),
    "want an absolute path",
  );

const hca = () =>
  z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*(?::[1-9]\d?)?$/, 'want "mlx5_0", or "mlx5_0:1"');

const fabricSchema = z.strictObject({
  name: z.string().regex(IDENTITY_NAME, 'want letters, digits, ".", "_" and "-", as in "ib-a"')
    .describe("Name of the island of adapters that reach each other, alike on all its nodes"),
  hcas: z.array(hca()).min(1, "a fabric needs at least one HCA")
    .describe('Adapters of this node on it: "mlx5_0" (every port) or "mlx5_0:1"'),
  link_layer: z.enum(["infiniband", "ethernet"]).optional()
    .describe("What the ports must be; left out: any, but all alike"),
  rate_gbps: z.number().positive().optional()
    .describe("Gb/s at which each port must run; left out: no expectation"),
});

const engineSchema = z.strictObject({
  name: z.enum(ENGINE_NAMES).describe("Which kind of engine it is"),
  path: absolutePath().describe("Its program, or the Python that has it"),
  env: environment().describe("Variables for this engine alone; they win over engine_env"),
  version_args: z.array(z.string()).optional()
    .describe("Arguments that make it print its version; left out: the engine's own"),
});

/** The schema of agent.yaml. */
export const configSchema = z.strictObject({
  node: z.string().regex(IDENTITY_NAME, 'want letters, digits, ".", "_" and "-", as in "gpu-7"')
    .optional()
    .describe("Name of this node; left out: the name in its certificate, or its host name"),
  control: z.array(z.string()).min(1, "want at least one URL, as in https://control-1:7443")
    .describe("URLs of control, the preferred one first"),
  address: z.string().min(1).optional()
    .describe(
      "Management address, which engines bind; left out: the source of the route to control",
    ),
  advertise_address: z.string().min(1).optional()
    .describe("Address at which others reach this node, where that is another one (NAT)"),
  tls: tlsFilesSchema.optional()
    .describe("The node's certificate; may be left out only when control is on loopback"),
  state_directory: absolutePath().default("/var/lib/heddle/agent")
    .describe("Folder of the agent's state, its engines' logs and their HOME"),
  sysfs_root: absolutePath().default("/run/heddle/sys")
    .describe("Where sysfs is readable for the agent; its unit binds /sys there"),
  kernel_log: absolutePath().default("/run/heddle/kmsg")
    .describe("Where the kernel's log is readable; the agent's unit binds /dev/kmsg there"),
  nvidia_smi: absolutePath().optional()
    .describe("Path of nvidia-smi; left out: where it usually is"),
  fabrics: z.array(fabricSchema).default([])
    .describe("Fabrics this node is on; none: it is an island"),
  model_dirs: z.array(absolutePath()).default(["/var/lib/heddle/models"])
    .describe("Folders in which weights are looked for, the first one first"),
  weights: weightsSchema.prefault({})
    .describe("Weights that are fetched, below the first of model_dirs"),
  engine_ports: z.strictObject({
    first: z.number().int().min(1024).max(65535).default(20000).describe(
      "First port an engine may get",
    ),
    last: z.number().int().min(1024).max(65535).default(31999).describe(
      "Last port an engine may get, itself included",
    ),
    block: z.number().int().min(PORT_BLOCK_MIN).max(4096).default(256)
      .describe("How many of them each shard is given"),
  }).prefault({}).describe("Ports for engines, below the ephemeral range"),
  engines: z.array(engineSchema).default([]).describe("Engines installed on this node"),
  engine_installs: installsSchema.prefault({})
    .describe("Engines that control wants, and the agent installs"),
  engine_env: environment()
    .describe("Variables for every engine, such as LD_LIBRARY_PATH; nothing else is inherited"),
  gpu_classes: z.array(z.strictObject({
    name: z.string().min(1).describe("The GPU's name as nvidia-smi prints it"),
    memory_mib: z.number().int().positive().optional()
      .describe("Its memory in MiB; left out: any"),
    class: z.string().regex(/^[a-z0-9][a-z0-9.:_-]*$/, 'want a class such as "h100-80g"')
      .describe("The class it is to be counted to"),
  })).default([]).describe("Classes of GPUs for which the rule gives the wrong one"),
  labels: z.record(z.string(), z.string()).default({})
    .describe("What operators want to know of this node"),
  adopt_ready_timeout: duration().default("60s")
    .describe("How long an engine that was ready before the agent restarted has to answer again"),
  launcher: z.enum(["process", "systemd"]).default("process")
    .describe(
      'How engines are started. "process": each under a shim that leads its process group. ' +
        '"systemd": each as a unit, with limits of its own; killed whole',
    ),
  engine_user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'want a user\'s name, "heddle-engine"')
    .default("heddle-engine")
    .describe("User that engines run as where they are units"),
  metrics: z.strictObject({
    listen: listen("127.0.0.1:9092")
      .describe("host:port of /metrics, /health and /ready; plain HTTP"),
    tls_listen: z.string().refine((text) => thrownBy(() => parseAddress(text)) === undefined, {
      error: "want host:port, as in 10.0.0.7:9192",
    }).optional().describe(
      "host:port of the same with mutual TLS, for scrapers with a monitor's or an operator's certificate; needs tls",
    ),
  }).prefault({}).describe("Listener for scrapers and probes"),
  shim: absolutePath().optional()
    .describe("Path of heddle-shim; left out: the one of this release"),
}).superRefine((config, context) => {
  const complain = (path: (string | number)[], message: string) =>
    context.addIssue({ code: "custom", path, message });
  config.control.forEach((url, index) => {
    const wrong = thrownBy(() => checkControlUrl(url, config.tls !== undefined));
    if (wrong !== undefined) complain(["control", index], wrong);
  });
  for (const { path, message } of fabricConflicts(config.fabrics)) complain(path, message);
  const { first, last, block } = config.engine_ports;
  if (last - first + 1 < block) {
    complain(
      ["engine_ports", "last"],
      `${first}–${last} has no room for a block of ${block} ports`,
    );
  }
  // systemd binds files below it into units, and takes these for the end of a path.
  if (config.launcher === "systemd" && /[\s:\\"']/.test(config.state_directory)) {
    complain(["state_directory"], "with launcher systemd want no blanks, colons or quotes in it");
  }
  if (config.metrics.tls_listen !== undefined && config.tls === undefined) {
    complain(["metrics", "tls_listen"], "needs the tls section");
  }
  if ((parseDurationMs(config.adopt_ready_timeout) ?? ADOPT_READY_MS_MIN) < ADOPT_READY_MS_MIN) {
    complain(["adopt_ready_timeout"], "want 1s or more: an engine needs a moment to answer");
  }
  if (config.model_dirs.length === 0) complain(["model_dirs"], "want at least one folder");
});

export type Config = z.output<typeof configSchema>;
export type EngineConfig = Config["engines"][number];

/** URLs of control in order of preference, each once. */
export function controlUrls(config: Config): readonly string[] {
  return [...new Set(config.control.map((url) => new URL(url).origin))];
}

/** How long an adopted engine has to answer, in ms. */
export function adoptReadyMs(config: Config): number {
  return parseDurationMs(config.adopt_ready_timeout) ?? ADOPT_READY_MS_MIN;
}

/** Where the metrics are served. */
export function metricsAddress(config: Config): Address {
  return parseAddress(config.metrics.listen);
}

/** Where they are served to whoever shows a certificate; undefined: nowhere. */
export function secureMetrics({ metrics, tls }: Config) {
  if (metrics.tls_listen === undefined || tls === undefined) return undefined;
  return { listen: parseAddress(metrics.tls_listen), files: tls };
}

function listen(byDefault: string) {
  return z.string().refine((text) => thrownBy(() => parseAddress(text)) === undefined, {
    error: `want host:port, as in ${byDefault}`,
  }).default(byDefault);
}

function thrownBy(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

interface Conflict {
  readonly path: (string | number)[];
  readonly message: string;
}

// An adapter on two fabrics, or a fabric that is there twice, would let a replica span both.
function fabricConflicts(fabrics: readonly z.output<typeof fabricSchema>[]): readonly Conflict[] {
  const conflicts: Conflict[] = [];
  const holders = new Map<string, string>();
  fabrics.forEach((fabric, index) => {
    if (fabrics.findIndex(({ name }) => name === fabric.name) < index) {
      conflicts.push({
        path: ["fabrics", index, "name"],
        message: `fabric "${fabric.name}" is there twice`,
      });
    }
    fabric.hcas.forEach((hca, at) => {
      const device = hca.split(":")[0] ?? hca;
      const other = [device, hca, ...portsOf(holders, hca)].find((name) => holders.has(name));
      if (other !== undefined) {
        const holder = holders.get(other);
        conflicts.push({
          path: ["fabrics", index, "hcas", at],
          message: holder === fabric.name
            ? `${hca} is there twice`
            : `${hca} is already on fabric "${holder}": an adapter is on one fabric`,
        });
      }
      holders.set(hca, fabric.name);
    });
  });
  return conflicts;
}

// "mlx5_0" is every port, so it is in conflict with "mlx5_0:1" too.
function portsOf(holders: ReadonlyMap<string, string>, hca: string): readonly string[] {
  return hca.includes(":") ? [] : [...holders.keys()].filter((name) => name.startsWith(`${hca}:`));
}
