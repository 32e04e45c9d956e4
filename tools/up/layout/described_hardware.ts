/** From a node of the fleet file to the fixture that its agent reads. */
import type { FixtureNode } from "../../fleet/fixture_spec.ts";
import type { FleetNode } from "./fleet_file.ts";

/** A driver that knows all of the GPUs one would describe. */
const DRIVER = "580.65.06";

/** Names of a node's HCAs: "mlx5_0", "mlx5_1", …. */
export function hcaNames(node: FleetNode): string[] {
  return Array.from({ length: node.hcas?.count ?? 0 }, (_, index) => `mlx5_${index}`);
}

export function describedHardware(node: FleetNode): FixtureNode {
  const { gpus, hcas } = node;
  return {
    node: node.name,
    driver: DRIVER,
    nvlink: node.nvlink,
    gpus: gpus === undefined ? [] : [{
      name: gpus.name,
      count: gpus.count,
      memoryMib: gpus.memory_mib,
      computeCapability: gpus.compute_capability,
    }],
    hcas: hcas === undefined
      ? []
      : hcaNames(node).map((name) => ({ name, linkLayer: hcas.link_layer, rate: hcas.rate })),
  };
}
