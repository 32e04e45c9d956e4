/** Everything that was read about a node's GPUs, before it is judged. */

import type { XidEvent } from "../health/xid.ts";
import type { PciSurvey } from "../host/pci_survey.ts";
import type { ComputeApp } from "../nvidia/compute_apps.ts";
import type { GpuClassOverride } from "./gpu_class.ts";
import type { Row } from "../nvidia/nvidia_csv.ts";
import type { NvidiaFailure } from "../nvidia/nvidia_failure.ts";
import type { NvlinkStatus } from "../nvidia/nvlink_status.ts";
import type { TopologyReading } from "../nvidia/topology.ts";

/** What one call of nvidia-smi gave. */
export type Answer<T> =
  /** It answered; `failure` may stand beside good data. */
  | { readonly kind: "answered"; readonly value: T; readonly failure: NvidiaFailure | undefined }
  /** It, or an earlier call, hangs: the driver does not answer. */
  | { readonly kind: "hung"; readonly call: string }
  | {
    readonly kind: "not_started";
    readonly why: "missing" | "denied" | "failed";
    readonly message: string;
  }
  /** Not asked: there is no nvidia-smi, or nothing to ask it. */
  | { readonly kind: "not_asked" };

/** Rows by UUID, and lines that were neither rows nor a heading. */
export interface GpuRows {
  readonly rows: ReadonlyMap<string, Row>;
  readonly rest: readonly string[];
}

export interface GpuReadings {
  /** Path of nvidia-smi; undefined: the node has none. */
  readonly nvidiaSmi: string | undefined;
  readonly identity: Answer<GpuRows>;
  readonly live: Answer<GpuRows>;
  readonly mode: Answer<GpuRows>;
  readonly health: Answer<GpuRows>;
  readonly recent: Answer<GpuRows>;
  readonly pcie: Answer<GpuRows>;
  /** MIG instances by UUID of their GPU. */
  readonly migInstances: ReadonlyMap<string, readonly string[]>;
  readonly topology: Answer<TopologyReading>;
  /** NVLinks by UUID; empty when they were not asked for or could not be read. */
  readonly nvlinks: ReadonlyMap<string, NvlinkStatus>;
  readonly processes: Answer<readonly ComputeApp[]>;
  /** The last identity row of every GPU seen since the agent started, the present ones included. */
  readonly known: ReadonlyMap<string, Row>;
  /** How many samples in a row a GPU was slowed by its hardware, by UUID. */
  readonly throttledSamples: ReadonlyMap<string, number>;
  readonly pci: PciSurvey;
  /** Faults in the kernel log of this boot, by PCI address. */
  readonly faults: ReadonlyMap<string, readonly XidEvent[]>;
  readonly systemMemoryMib: number | undefined;
  readonly overrides: readonly GpuClassOverride[];
  /** GPUs that shards of this node hold; undefined: unknown, so no process is called foreign. */
  readonly held: ReadonlySet<string> | undefined;
  /** Processes on held GPUs that are known to be nobody's of ours, with their names. */
  readonly strangers: ReadonlyMap<number, string>;
  /** Windows' subsystem: its process list means nothing here. */
  readonly wsl: boolean;
}
