/** What discovery looks at, as agent.yaml says it. */
import type { Config } from "../config.ts";
import type { DiscoveryOptions } from "../inventory.ts";

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
