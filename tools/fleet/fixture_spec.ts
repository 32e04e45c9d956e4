/** How a node that is only described is described, and made-up identifiers for it. */

export interface FixtureGpus {
  /** As the driver prints it, `NVIDIA H100 80GB HBM3`. */
  readonly name: string;
  readonly count: number;
  readonly memoryMib: number;
  /** `9.0`. */
  readonly computeCapability: string;
  /** Four hex digits; by default that of the name, where it is a common one. */
  readonly pciDeviceId?: string;
  /** Cells of nvidia-smi's tables that differ, by field: `{ "fabric.state": "In Progress" }`. */
  readonly cells?: Readonly<Record<string, string>>;
}

export interface FixtureHca {
  /** `mlx5_0`. */
  readonly name: string;
  readonly linkLayer: "InfiniBand" | "Ethernet";
  /** As sysfs prints it, `400 Gb/sec (4X NDR)`. */
  readonly rate: string;
  /** As sysfs prints it; by default `4: ACTIVE`. */
  readonly state?: string;
}

export interface FixtureNode {
  /** Makes UUIDs and GUIDs its own; by default the last part of the folder. */
  readonly node?: string;
  /** Driver version, `580.65.06`. */
  readonly driver: string;
  readonly gpus: readonly FixtureGpus[];
  readonly hcas: readonly FixtureHca[];
  /** NVLink between GPUs: all with all, neighbours two by two, or none. */
  readonly nvlink: "all" | "pairs" | "none";
  /** NVSwitches that the PCI bus shows. @default none */
  readonly nvswitches?: number;
  /** A PCI bridge above the first GPU that sends what it says to others up to the root (ACS). */
  readonly acsRedirects?: boolean;
  /** Files of the adapters below /dev: open to all, to root alone, or not there. @default open */
  readonly rdmaDevices?: "open" | "closed" | "none";
}

/** One described GPU, in PCI order. */
export interface FixtureGpu {
  readonly index: number;
  readonly uuid: string;
  /** `0000:18:00.0`. */
  readonly pciFunction: string;
  readonly numaNode: number;
  readonly group: FixtureGpus;
}

/** `value` in hex, at least `width` digits. */
export function hex(value: number, width: number): string {
  return value.toString(16).padStart(width, "0");
}

/** Made-up hex digits that are always the same for the same text (FNV-1a, repeated). */
export function digitsOf(text: string, count: number): string {
  let digits = "";
  for (let round = 0; digits.length < count; round += 1) {
    let hash = 0x811c9dc5;
    for (const char of `${round}:${text}`) {
      hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    }
    digits += hex(hash, 8);
  }
  return digits.slice(0, count);
}
