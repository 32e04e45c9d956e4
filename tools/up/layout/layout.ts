/**
 * Everything `up` writes below its state directory: a folder for each program with its
 * configuration, its certificate and its state, so that each can be confined to its own.
 *
 *     ca/  control/  router/  agents/<node>/  ctl/  logs/
 */
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import type { KeyPairPem } from "@heddle/common/pki";
import { writeFixtureNode } from "../../fleet/fixture_node.ts";
import { CLUSTER, issueCertificate, openAuthority } from "./certificates.ts";
import type { ProgramSpec } from "../processes/children.ts";
import { describedHardware, hcaNames } from "./described_hardware.ts";
import type { UpNode, UpPlan } from "./node.ts";
import { ENGINE_PORT_BLOCK, type Ports } from "./ports.ts";

const SYSFS_MOUNT = "/run/heddle/sys";

/** What a laid-out state directory has to be started with. */
export interface Laid {
  readonly control: ProgramSpec;
  readonly router: ProgramSpec;
  readonly agents: readonly ProgramSpec[];
  /** For ctl: HEDDLE_CTL_CONFIG. */
  readonly ctlConfig: string;
  readonly catalogFile: string;
}

export interface LayoutOptions {
  /** The folder of the launchers, absolute. */
  readonly bin: string;
  /** State directory, absolute. */
  readonly state: string;
  readonly plan: UpPlan;
  readonly ports: Ports;
  readonly logFormat: "text" | "json";
}

/** Writes all files into a state directory that is there and claimed. */
export async function layOut(options: LayoutOptions): Promise<Laid> {
  const { state } = options;
  const authority = await openAuthority(join(state, "ca"));
  const catalogFile = await layCatalog(options);
  return {
    control: await layControl(options, authority, catalogFile),
    router: await layRouter(options, authority),
    agents: await Promise.all(
      options.plan.nodes.map((node, index) => layAgent(options, authority, { node, index })),
    ),
    ctlConfig: await layCtl(options, authority),
    catalogFile,
  };
}

async function layCatalog({ plan, state }: LayoutOptions): Promise<string> {
  if ("file" in plan.catalog) return plan.catalog.file;
  const file = join(await makeFolder(join(state, "control")), "catalog.yaml");
  await writeFileAtomic(file, plan.catalog.text);
  return file;
}

async function layControl(
  options: LayoutOptions,
  authority: KeyPairPem,
  catalogFile: string,
): Promise<ProgramSpec> {
  const folder = join(options.state, "control");
  const { ports } = options;
  const config = await writeConfig(join(folder, "control.yaml"), {
    cluster: CLUSTER,
    agents: { listen: `127.0.0.1:${ports.controlAgents}` },
    admin: { listen: `127.0.0.1:${ports.controlAdmin}` },
    metrics: { listen: `127.0.0.1:${ports.controlMetrics}` },
    console: {
      listen: `127.0.0.1:${ports.console}`,
      endpoint: `http://127.0.0.1:${ports.openai}/v1`,
    },
    tls: await issueCertificate(authority, { role: "control", name: "control", folder }),
    catalog_file: catalogFile,
    state_directory: folder,
  });
  return program(options, {
    label: "control",
    launcher: "heddle-control",
    config,
    env: { HEDDLE_STATE: folder, HEDDLE_READ: dirname(catalogFile) },
  });
}

async function layRouter(options: LayoutOptions, authority: KeyPairPem): Promise<ProgramSpec> {
  const folder = join(options.state, "router");
  const { ports } = options;
  const config = await writeConfig(join(folder, "router.yaml"), {
    name: "router/1",
    listen: `127.0.0.1:${ports.openai}`,
    admin: { listen: `127.0.0.1:${ports.routerAdmin}` },
    control: {
      urls: [`https://127.0.0.1:${ports.controlAgents}`],
      tls: await issueCertificate(authority, { role: "router", name: "router-1", folder }),
    },
    state_directory: folder,
    keys: { policy: "open" },
  });
  return program(options, {
    label: "router",
    launcher: "heddle-router",
    config,
    env: { HEDDLE_STATE: folder },
  });
}

async function layAgent(
  options: LayoutOptions,
  authority: KeyPairPem,
  { node, index }: { node: UpNode; index: number },
): Promise<ProgramSpec> {
  const { ports, bin } = options;
  const folder = join(options.state, "agents", node.name);
  const range = ports.engines[index];
  const hardware = await describeHardware(node, folder);
  const config = await writeConfig(join(folder, "agent.yaml"), {
    node: node.name,
    control: [`https://127.0.0.1:${ports.controlAgents}`],
    address: "127.0.0.1",
    tls: await issueCertificate(authority, { role: "agent", name: node.name, folder }),
    state_directory: folder,
    metrics: { listen: `127.0.0.1:${ports.agentMetrics[index]}` },
    engine_ports: { first: range?.first, last: range?.last, block: ENGINE_PORT_BLOCK },
    engines: node.engines.map(({ name, path }) => ({ name, path })),
    engine_env: { HEDDLE_DENO: Deno.execPath(), ...denoCache(), ...simulatedFabric(node) },
    model_dirs: [await makeFolder(join(folder, "models")), ...node.modelDirs],
    weights: { reserve: "1GiB", env: { HEDDLE_DENO: Deno.execPath(), ...denoCache() } },
    labels: node.described?.labels ?? {},
    shim: join(bin, "heddle-shim"),
    ...hardware.config,
  });
  return program(options, {
    label: options.plan.nodes.length === 1 ? "agent" : `agent ${node.name}`,
    launcher: "heddle-agent",
    config,
    env: {
      HEDDLE_STATE: folder,
      // Where production mounts sysfs: an agent that may not look could not tell that it is missing.
      HEDDLE_READ: [SYSFS_MOUNT, ...node.modelDirs].join(","),
      ...hardware.env,
    },
  });
}

// The simulated engine is a Deno program: without its cache it would have to fetch its modules,
// which it may not.
function denoCache(): Record<string, string> {
  const names = ["DENO_DIR", "XDG_CACHE_HOME", "HOME"];
  return Object.fromEntries(
    names.map((name) => [name, Deno.env.get(name)] as const)
      .filter((entry): entry is readonly [string, string] => entry[1] !== undefined),
  );
}

// Ranks on different fabrics hang at their first request, as real engines do: what a placement
// that breaks the fabric rule costs can be seen without a GPU.
function simulatedFabric(node: UpNode): Record<string, string> {
  if (node.described === undefined) return {};
  return { HEDDLE_SIM_FABRIC: node.described.fabric ?? `island-${node.name}` };
}

async function describeHardware(
  node: UpNode,
  folder: string,
): Promise<{ config: Record<string, unknown>; env: Record<string, string> }> {
  if (node.described === undefined) return { config: {}, env: {} };
  const hardware = join(folder, "hardware");
  const written = await writeFixtureNode(hardware, describedHardware(node.described));
  return {
    config: {
      sysfs_root: written.sysfsRoot,
      ...(written.nvidiaSmi === undefined ? {} : { nvidia_smi: written.nvidiaSmi }),
      fabrics: node.described.fabric === undefined
        ? []
        : [{ name: node.described.fabric, hcas: hcaNames(node.described) }],
    },
    env: written.nvidiaSmi === undefined ? {} : { HEDDLE_NVIDIA_SMI: written.nvidiaSmi },
  };
}

async function layCtl(options: LayoutOptions, authority: KeyPairPem): Promise<string> {
  const folder = join(options.state, "ctl");
  return await writeConfig(join(folder, "config.yaml"), {
    current: CLUSTER,
    contexts: [{
      name: CLUSTER,
      url: `https://127.0.0.1:${options.ports.controlAdmin}`,
      tls: await issueCertificate(authority, { role: "operator", name: "up", folder }),
      endpoint: { url: `http://127.0.0.1:${options.ports.openai}` },
    }],
  });
}

async function makeFolder(path: string): Promise<string> {
  await Deno.mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}

async function writeConfig(file: string, config: Record<string, unknown>): Promise<string> {
  await makeFolder(dirname(file));
  await writeFileAtomic(file, stringify(config));
  return file;
}

function program(
  options: LayoutOptions,
  given: { label: string; launcher: string; config: string; env: Record<string, string> },
): ProgramSpec {
  return {
    label: given.label,
    launcher: join(options.bin, given.launcher),
    args: ["--config", given.config, "--log-format", options.logFormat],
    env: { HEDDLE_DENO: Deno.execPath(), ...given.env },
    logFile: join(options.state, "logs", `${given.label.replaceAll(" ", "-")}.log`),
  };
}
