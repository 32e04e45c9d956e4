/** One look at a node's hardware, for people: no control, no engines, and perhaps no such machine. */

import type { Inventory } from "@heddle/proto/gen/types";
import { createDiscoveryOf, type DiscoveryOptions } from "../inventory.ts";
import { encodeNodeLoad } from "../edge/encode_inventory.ts";
import { readHostLoad } from "../edge/hardware/host.ts";
import { kernelLogOf, readCapture, RecordingSource } from "./hardware_capture.ts";
import { machineSource } from "./hardware_source.ts";

export interface Inspection {
  readonly discovery: DiscoveryOptions;
  /** Also write what was read into this folder, masked. */
  readonly capture?: string;
  /** Look at what this folder holds instead of at the machine. */
  readonly replay?: string;
}

/**
 * The inventory, without engines. Throws HeddleError when the capture cannot be written or read.
 * A replay has no model directories: those are the machine's that it was made on. Its fabrics are the
 * captured ones, unless others are declared here to try them.
 */
export async function inspectHardware(
  { discovery, capture, replay }: Inspection,
  signal: AbortSignal,
): Promise<Inventory> {
  if (replay !== undefined) {
    const { source, settings } = await readCapture(replay);
    const options = {
      ...discovery,
      ...settings,
      ...(discovery.fabrics.length > 0 ? { fabrics: discovery.fabrics } : {}),
      modelDirs: [],
      kernelLog: kernelLogOf(replay),
    };
    return await createDiscoveryOf(source, options).inventory(signal);
  }
  const source = new RecordingSource(machineSource(discovery.sysfsRoot, discovery.nvidiaSmi));
  const looked = createDiscoveryOf(source, discovery);
  const inventory = await looked.inventory(signal);
  inventory.load = encodeNodeLoad(readHostLoad(), [], inventory.gpus);
  if (capture !== undefined) await source.write(capture, looked.kernelFaults(), discovery);
  return inventory;
}
