/** What discovery finds wrong: a closed reason for metrics and tests, and words for the operator. */

/** Reasons about one GPU that keep it out of placement. */
export type GpuProblemReason =
  | "class_unknown"
  | "compute_prohibited"
  | "driver_failed"
  | "driver_hung"
  | "fabric_failed"
  | "fabric_not_ready"
  | "foreign_process"
  | "gpu_error"
  | "gpu_lost"
  | "gpu_needs_recovery"
  | "memory_unknown"
  | "mig_enabled"
  | "mig_instance"
  | "page_retirement_pending"
  | "row_remap_failed"
  | "row_remap_pending"
  | "vgpu"
  | "xid_fatal";

/** Reasons about one RDMA port that keep it out of its fabric. */
export type HcaProblemReason =
  | "link_layer_unknown"
  | "link_layer_wrong"
  | "no_subnet_manager"
  | "port_down"
  | "port_state_unknown";

/** Reasons about a declared fabric. */
export type FabricProblemReason =
  | "fabric_degraded"
  | "fabric_mixed_link_layers"
  | "fabric_rate_low"
  | "fabric_unusable"
  | "fabric_wsl";

/** Reasons about the node as a whole, or about a part that has no row of its own. */
export type NodeProblemReason =
  | FabricProblemReason
  | "cpu_without_avx2"
  | "driver_failed"
  | "driver_hung"
  | "driver_missing"
  | "gpu_missing"
  | "gpu_pcie_narrow"
  | "gpu_persistence_off"
  | "gpu_throttled"
  | "gpu_unidentified"
  | "gpu_xid"
  | "hca_link_unstable"
  | "host_facts_denied"
  | "management_address_not_local"
  | "mig_change_pending"
  | "model_dir_missing"
  | "model_dir_not_answering"
  | "model_dir_truncated"
  | "model_dir_unreadable"
  | "nvidia_smi_denied"
  | "nvlink_inactive"
  | "nvidia_smi_missing"
  | "nvidia_smi_partial"
  | "rdma_driver_missing"
  | "sysfs_denied"
  | "sysfs_missing"
  | "topology_unknown";

/** A reason with the words that go with it. `detail` says what and why, `remedy` what to do next. */
export interface Problem<Reason extends string = string> {
  readonly reason: Reason;
  readonly detail: string;
  readonly remedy: string;
}

export type GpuProblem = Problem<GpuProblemReason>;
export type HcaProblem = Problem<HcaProblemReason>;
export type NodeProblem = Problem<NodeProblemReason>;
