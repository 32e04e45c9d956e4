/** What discovery looks at, as agent.yaml says it. */
import { join } from "node:path";
import type { Config } from "../config.ts";
import { openBootMemory } from "../edge/boot_memory.ts";
import { createDiscovery, type Discovery, type DiscoveryOptions } from "../inventory.ts";
import { strangerWatch } from "./own_processes.ts";

/** What an agent that runs engines knows besides. */
export interface RunningAgent extends Pick<DiscoveryOptions, "heldGpus" | "onNvidiaSmi"> {
  /** Absolute path of heddle-shim. */
  readonly shim: string;
  /** Of this start of the machine. */
  readonly bootId: string;
}

/** Discovery beside engines: what was seen since the boot counts, and who uses their GPUs. */
export async function openDiscovery(
  options: Parameters<typeof discoveryOptions>[0],
  address: string,
  { shim, bootId, ...running }: RunningAgent,
): Promise<Discovery> {
  const stateDirectory = options.config.state_directory;
  return createDiscovery({
    ...discoveryOptions(options, address),
    ...running,
    strangers: await strangerWatch({ shim, stateDirectory }),
    memory: await openBootMemory(join(stateDirectory, "boot.json"), bootId),
  });
}

/** Hardware discovery as the configuration wants it. */
export function discoveryOptions(
  { config, nvidiaSmi }: { readonly config: Config; readonly nvidiaSmi: string | undefined },
  address: string,
): DiscoveryOptions {
  return {
    sysfsRoot: config.sysfs_root,
    kernelLog: config.kernel_log,
    nvidiaSmi,
    fabrics: config.fabrics.map(({ name, hcas, link_layer, rate_gbps }) => ({
      name,
      hcas,
      ...(link_layer === undefined ? {} : { linkLayer: link_layer }),
      ...(rate_gbps === undefined ? {} : { rateGbps: rate_gbps }),
    })),
    modelDirs: config.model_dirs,
    enginePorts: config.engine_ports,
    labels: config.labels,
    gpuClassOverride: config.gpu_classes.map(({ name, memory_mib, class: gpuClass }) => ({
      name,
      gpuClass,
      ...(memory_mib === undefined ? {} : { memoryMib: memory_mib }),
    })),
    now: Date.now,
    managementAddress: address,
  };
}
