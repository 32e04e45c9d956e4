/** What the PCI bus says is in the machine, whether or not a driver sees it. */

export interface PciFunction {
  /** Normalised, `0000:3d:00`. */
  readonly address: string;
  /** As sysfs prints it, `0x030200`. */
  readonly pciClass: string;
  readonly numaNode: number | undefined;
  /** Where sysfs has it below the bridges; undefined: it does not say. */
  readonly path?: string | undefined;
  /** The kernel driver bound to it; undefined when none is. */
  readonly driver: string | undefined;
}

export type PciSurvey =
  | {
    readonly kind: "read";
    /** NVIDIA display and 3D controllers. */
    readonly gpus: readonly PciFunction[];
    /** NVIDIA (Mellanox) network controllers, which carry RDMA once their driver is loaded. */
    readonly rdmaCapable: readonly PciFunction[];
  }
  | { readonly kind: "missing" }
  | { readonly kind: "denied" | "unreadable"; readonly message: string };
