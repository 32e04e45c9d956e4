/** Where discovery's readings come from: the machine itself, or what was captured of one. */

import type { HostFacts } from "../core/host/host_facts.ts";
import { readHost } from "../edge/hardware/host.ts";
import { NvidiaSmi, type NvidiaTool } from "../edge/hardware/nvidia_smi.ts";
import { type TimedCall, TimedNvidiaSmi } from "../edge/hardware/timed_nvidia_smi.ts";
import { MountedSysfs, type Sysfs } from "../edge/hardware/sysfs.ts";

export interface HardwareSource {
  readonly sysfs: Sysfs;
  /** Undefined: there is no nvidia-smi. */
  readonly nvidiaSmi: NvidiaTool | undefined;
  /** Facts about the machine, read anew at each call. Never throws. */
  readonly host: () => HostFacts;
}

/**
 * The machine itself. `nvidiaSmi` is a path that the agent may run; undefined: there is none.
 * `onCall` hears of each call of it.
 */
export function machineSource(
  sysfsRoot: string,
  nvidiaSmi: string | undefined,
  onCall: (call: TimedCall) => void = () => {},
): HardwareSource {
  return {
    sysfs: new MountedSysfs(sysfsRoot),
    nvidiaSmi: nvidiaSmi === undefined
      ? undefined
      : new TimedNvidiaSmi(new NvidiaSmi(nvidiaSmi), onCall),
    host: readHost,
  };
}
