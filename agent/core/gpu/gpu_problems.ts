/**
 * What keeps one GPU out of placement. Only what was read counts: a cell without a value is unknown
 * and no fault, except where the word in it is itself the news.
 */

import type { GpuProblem } from "../problem.ts";
import type { GpuKind } from "./gpu_class.ts";
import { pciAddress } from "../nvidia/pci_address.ts";
import type { ComputeApp } from "../nvidia/compute_apps.ts";
import { cellOf, type Row, textOf } from "../nvidia/nvidia_csv.ts";
import type { Answer, GpuReadings, GpuRows } from "./readings.ts";

const RESET = "Drain the node, then reset the GPU (nvidia-smi --gpu-reset -i INDEX) or reboot.";
const REPLACE = "Take the GPU out of service and have it replaced.";
const FABRIC_MANAGER =
  "Check that nvidia-fabricmanager runs in the driver's own version (systemctl status " +
  "nvidia-fabricmanager); on B200 and later also that NVLSM does.";

/** Problems of the GPU whose last identity row is `row`. Empty means usable. */
export function gpuProblems(
  uuid: string,
  row: Row,
  kind: GpuKind,
  readings: GpuReadings,
): GpuProblem[] {
  const absence = absenceProblem(uuid, row, readings);
  if (absence !== undefined) return [absence];
  return [
    ...kindProblems(textOf(row, "name") ?? "", kind),
    ...cellProblems(rowOf(readings.live, uuid), row),
    ...modeProblems(uuid, readings),
    ...healthProblems(rowOf(readings.health, uuid)),
    ...recoveryProblems(rowOf(readings.recent, uuid)),
    ...fabricProblems(rowOf(readings.recent, uuid)),
    ...faultProblems(row, readings),
    ...foreignProblems(uuid, readings),
  ];
}

/** The row of a GPU in one answer, if there is one. */
export function rowOf(answer: Answer<GpuRows>, uuid: string): Row | undefined {
  return answer.kind === "answered" ? answer.value.rows.get(uuid) : undefined;
}

/** A GPU that was here and of which the driver says nothing now. */
function absenceProblem(uuid: string, row: Row, readings: GpuReadings): GpuProblem | undefined {
  const hung = [readings.identity, readings.live].find((each) => each.kind === "hung");
  if (hung?.kind === "hung") {
    return {
      reason: "driver_hung",
      detail: `The driver does not answer: nvidia-smi ${hung.call} hangs.`,
      remedy: "Drain the node and reboot it; a process in state D cannot be killed.",
    };
  }
  if (rowOf(readings.identity, uuid) !== undefined) return undefined;
  const { identity } = readings;
  const present = identity.kind === "answered" && identity.value.rows.size > 0;
  const lost = identity.kind === "answered" && identity.failure?.kind === "gpu_lost";
  if (present || lost) {
    return {
      reason: "gpu_lost",
      detail: `The GPU at ${textOf(row, "pci.bus_id") ?? "an unknown address"} was here and the ` +
        "driver no longer lists it.",
      remedy: "Look for Xid 79 in the kernel log; drain the node and reboot it.",
    };
  }
  const why = identity.kind === "answered" && identity.failure !== undefined
    ? "text" in identity.failure ? identity.failure.text : `it refuses ${identity.failure.field}`
    : identity.kind === "not_started"
    ? identity.message
    : "it lists no GPU";
  return {
    reason: "driver_failed",
    detail: `The driver no longer tells of this GPU: ${why}`,
    remedy: "See the node's own problem; what runs goes on, nothing new can start.",
  };
}

function kindProblems(name: string, kind: GpuKind): GpuProblem[] {
  switch (kind.kind) {
    case "whole":
      return [];
    case "mig":
      return [{
        reason: "mig_instance",
        detail: `"${name}" is a MIG instance, a part of a GPU.`,
        remedy: "Give the node whole GPUs: disable MIG, or pass the whole device through.",
      }];
    case "vgpu":
      return [{
        reason: "vgpu",
        detail: `"${name}" is a vGPU, a share of a GPU that others use too.`,
        remedy: "Give the virtual machine whole GPUs by passthrough.",
      }];
    case "memory_unknown":
      return [{
        reason: "memory_unknown",
        detail: `The driver does not say how much memory "${name}" has.`,
        remedy: "Run nvidia-smi -q on the node; a healthy GPU shows its FB memory. " + RESET,
      }];
    case "name_unknown":
      return [{
        reason: "class_unknown",
        detail: `The driver's name "${name}" does not tell which GPU it is.`,
        remedy: "Give its class in the agent's configuration (gpu_classes).",
      }];
    default:
      return kind satisfies never;
  }
}

/** Words in cells that every healthy GPU fills with numbers. */
function cellProblems(live: Row | undefined, identity: Row): GpuProblem[] {
  const cells = [
    ...["temperature.gpu", "pstate", "utilization.gpu", "memory.used"].map((field) =>
      [field, cellOf(live, field)] as const
    ),
    ["memory.total", cellOf(identity, "memory.total")] as const,
  ];
  for (const [field, cell] of cells) {
    if (cell.kind !== "absent") continue;
    if (cell.why === "requires_reset") {
      return [{
        reason: "gpu_needs_recovery",
        detail: `The driver says that the GPU requires a reset (${field}).`,
        remedy: RESET,
      }];
    }
    if (cell.why === "lost") {
      return [{
        reason: "gpu_lost",
        detail: `The driver says that the GPU is lost (${field}).`,
        remedy: "Look for Xid 79 in the kernel log; drain the node and reboot it.",
      }];
    }
    if (cell.why === "error" && field !== "utilization.gpu") {
      return [{
        reason: "gpu_error",
        detail: `The driver fails to read the GPU: ${field} says "Unknown Error".`,
        remedy: "Look for Xid lines in the kernel log. " + RESET,
      }];
    }
  }
  return [];
}

function modeProblems(uuid: string, readings: GpuReadings): GpuProblem[] {
  const mode = rowOf(readings.mode, uuid);
  const problems: GpuProblem[] = [];
  if (isWord(mode, "mig.mode.current", "enabled")) {
    const instances = readings.migInstances.get(uuid) ?? [];
    problems.push({
      reason: "mig_enabled",
      detail: "MIG is enabled, so the GPU cannot be used whole" +
        (instances.length > 0 ? `; it is cut into ${instances.join(", ")}.` : "."),
      remedy: "Disable MIG (nvidia-smi -i INDEX -mig 0) and reset the GPU.",
    });
  }
  if (isWord(mode, "compute_mode", "prohibited")) {
    problems.push({
      reason: "compute_prohibited",
      detail: "Its compute mode is Prohibited: no process may use it.",
      remedy: "Set the compute mode to Default (nvidia-smi -i INDEX -c DEFAULT).",
    });
  }
  return problems;
}

function healthProblems(health: Row | undefined): GpuProblem[] {
  const problems: GpuProblem[] = [];
  if (isWord(health, "remapped_rows.failure", "yes", "1")) {
    problems.push({
      reason: "row_remap_failed",
      detail: "Remapping a bad row of its memory has failed: there are no spare rows left.",
      remedy: REPLACE,
    });
  }
  if (isWord(health, "remapped_rows.pending", "yes", "1")) {
    problems.push({
      reason: "row_remap_pending",
      detail: "A bad row of its memory waits to be remapped, which takes a reset.",
      remedy: RESET,
    });
  }
  if (isWord(health, "retired_pages.pending", "yes", "1")) {
    problems.push({
      reason: "page_retirement_pending",
      detail: "A bad page of its memory waits to be retired, which takes a reset.",
      remedy: RESET,
    });
  }
  return problems;
}

function recoveryProblems(recent: Row | undefined): GpuProblem[] {
  const action = textOf(recent, "gpu_recovery_action");
  if (action === undefined || /^none$/i.test(action)) return [];
  return [{
    reason: "gpu_needs_recovery",
    detail: `The driver asks for a recovery action: ${action}.`,
    remedy: /reset/i.test(action) ? RESET : `Drain the node, then do what it asks: ${action}.`,
  }];
}

/**
 * NVLink's fabric through switches. Until it is up every CUDA program fails on this GPU, although
 * temperature, memory and utilisation look perfect.
 */
function fabricProblems(recent: Row | undefined): GpuProblem[] {
  const state = textOf(recent, "fabric.state") ?? "";
  const status = textOf(recent, "fabric.status");
  if (/^(?:in progress|not started)$/i.test(state)) {
    return [{
      reason: "fabric_not_ready",
      detail: `NVLink's fabric is not up: state "${state}". CUDA fails until it is.`,
      remedy: FABRIC_MANAGER,
    }];
  }
  if (!/^completed$/i.test(state)) return [];
  if (status !== undefined && !/^success$/i.test(status)) {
    return [{
      reason: "fabric_failed",
      detail: `NVLink's fabric came up with status "${status}".`,
      remedy: FABRIC_MANAGER,
    }];
  }
  if (isWord(recent, "fabric.health.summary", "unhealthy")) {
    return [{
      reason: "fabric_failed",
      detail: 'NVLink\'s fabric is up and its health is "Unhealthy".',
      remedy: "See nvidia-smi -q, section Fabric, Health; drain the node and reset the GPU.",
    }];
  }
  return [];
}

/** What the kernel logged of this GPU since the boot. A reset does not clear it: a boot does. */
function faultProblems(row: Row, readings: GpuReadings): GpuProblem[] {
  const faults = readings.faults.get(pciAddress(textOf(row, "pci.bus_id") ?? "") ?? "") ?? [];
  const grave = faults.find((each) => each.verdict === "out" || each.verdict === "nvlink");
  if (grave === undefined) return [];
  const name = grave.xid === undefined ? "" : `Xid ${grave.xid}, `;
  return [{
    reason: "xid_fatal",
    detail: `The kernel logged a fault of this GPU since the last boot: ${name}${grave.text}`,
    remedy: grave.xid === 64
      ? REPLACE
      : "Drain the node and reboot it; have the GPU replaced if the fault returns.",
  }];
}

/** Names of processes that belong to the system and hold no memory of their own. */
const SYSTEM_PROCESS = /(?:^|\/)nvidia-cuda-mps-(?:server|control)$/;

/** Processes that compute on a GPU, without those of the system. */
export function computing(uuid: string, apps: readonly ComputeApp[]): readonly ComputeApp[] {
  return apps.filter(({ gpuUuid, name }) => gpuUuid === uuid && !SYSTEM_PROCESS.test(name));
}

/** On a free GPU nobody of ours is; on a held one only who is known to be no part of an engine counts. */
function foreignProblems(uuid: string, readings: GpuReadings): GpuProblem[] {
  const { held, strangers, processes } = readings;
  if (held === undefined || readings.wsl || processes.kind !== "answered") return [];
  const beside = held.has(uuid);
  const foreign = computing(uuid, processes.value)
    .filter(({ pid }) => !beside || strangers.has(pid));
  if (foreign.length === 0) return [];
  const each = foreign.slice(0, 4).map(({ pid, name, memoryMib }) => {
    // The driver may not tell a name; the machine then does.
    const known = name.startsWith("[") ? strangers.get(pid) ?? name : name;
    return `pid ${pid} (${known}${memoryMib === undefined ? "" : `, ${memoryMib} MiB`})`;
  });
  const more = foreign.length > 4 ? ` and ${foreign.length - 4} more` : "";
  return [{
    reason: "foreign_process",
    detail: `Processes that are not Heddle's use it${beside ? " beside an engine" : ""}: ` +
      `${each.join(", ")}${more}.`,
    remedy: beside
      ? "Stop them: they take memory and time from the engine, which goes on. Nothing new is " +
        "placed on the GPU until they are gone."
      : "Stop them, or leave the GPU to them.",
  }];
}

function isWord(row: Row | undefined, field: string, ...words: readonly string[]): boolean {
  return words.includes(textOf(row, field)?.toLowerCase() ?? "");
}
