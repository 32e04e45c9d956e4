/** What is wrong with the node's GPUs as a whole: driver, tool, GPUs that are not listed, warnings. */

import type { NodeProblem } from "../problem.ts";
import { displacedGpus } from "./displaced_gpus.ts";
import { gpuWarnings } from "./gpu_warnings.ts";
import { pciAddress } from "../nvidia/pci_address.ts";
import { countOf, type Row, textOf } from "../nvidia/nvidia_csv.ts";
import type { NvidiaFailure } from "../nvidia/nvidia_failure.ts";
import type { Answer, GpuReadings, GpuRows } from "./readings.ts";

const INSTALL =
  "If it should have GPUs, install NVIDIA's driver and name nvidia-smi in agent.yaml.";

/** Problems of the node, the gravest first. */
export function driverProblems(readings: GpuReadings): NodeProblem[] {
  const tool = toolProblem(readings);
  if (tool !== undefined) return [tool, ...partialProblems(readings)];
  return [
    ...missingProblems(readings),
    ...displacedProblems(readings),
    ...unidentifiedProblems(readings),
    ...topologyProblems(readings),
    ...partialProblems(readings),
    ...gpuWarnings(readings),
  ];
}

/** Why nothing at all can be said about GPUs. */
function toolProblem(readings: GpuReadings): NodeProblem | undefined {
  const onBus = readings.pci.kind === "read" ? readings.pci.gpus.length : undefined;
  if (readings.nvidiaSmi === undefined) return noToolProblem(onBus);
  const { identity } = readings;
  switch (identity.kind) {
    case "hung":
      return hungProblem(identity.call);
    case "not_started":
      return notStartedProblem(readings.nvidiaSmi, identity, onBus);
    case "answered":
      return readings.live.kind === "hung"
        ? hungProblem(readings.live.call)
        : failedProblem(identity, onBus);
    case "not_asked":
      return undefined;
    default:
      return identity satisfies never;
  }
}

function hungProblem(call: string): NodeProblem {
  return {
    reason: "driver_hung",
    detail: `The NVIDIA driver does not answer: nvidia-smi ${call} hangs. No other is started.`,
    remedy: "Drain the node and reboot it; look for Xid lines in the kernel log first.",
  };
}

/** A node without the tool whose PCI bus shows no GPU either is a whole node without GPUs. */
function noToolProblem(onBus: number | undefined): NodeProblem | undefined {
  if (onBus === 0) return undefined;
  return onBus === undefined
    ? {
      reason: "nvidia_smi_missing",
      detail: "There is no nvidia-smi, so this node offers no GPUs; its PCI bus cannot be read.",
      remedy: INSTALL,
    }
    : {
      reason: "driver_missing",
      detail: `The PCI bus shows ${onBus} NVIDIA GPU(s), and there is no nvidia-smi to ask.`,
      remedy: "Install NVIDIA's driver, and name nvidia-smi in agent.yaml.",
    };
}

function notStartedProblem(
  path: string,
  answer: Extract<Answer<GpuRows>, { readonly kind: "not_started" }>,
  onBus: number | undefined,
): NodeProblem {
  if (answer.why === "denied") {
    return {
      reason: "nvidia_smi_denied",
      detail: `The agent may not run ${path}: ${answer.message}`,
      remedy: "Set HEDDLE_NVIDIA_SMI to that path where the agent is started, and check its mode.",
    };
  }
  if (answer.why === "missing" && (onBus ?? 0) > 0) {
    return {
      reason: "driver_missing",
      detail: `The PCI bus shows ${onBus} NVIDIA GPU(s), and there is no ${path} to ask.`,
      remedy: "Install NVIDIA's driver, or correct the path in agent.yaml.",
    };
  }
  return {
    reason: "nvidia_smi_missing",
    detail: `Cannot run ${path}: ${answer.message}. This node offers no GPUs` +
      (onBus === 0 ? "; the PCI bus shows none either." : "."),
    remedy: INSTALL,
  };
}

/** Failures of the whole call. One GPU's failure beside good rows is told on that GPU. */
function failedProblem(
  answer: Extract<Answer<GpuRows>, { readonly kind: "answered" }>,
  onBus: number | undefined,
): NodeProblem | undefined {
  const { failure } = answer;
  const rows = answer.value.rows.size;
  if (failure === undefined) {
    return rows > 0 ? undefined : {
      reason: "driver_failed",
      detail: "nvidia-smi answers without listing a GPU" +
        (answer.value.rest[0] === undefined ? "." : `: ${answer.value.rest[0].slice(0, 200)}`),
      remedy: "Run nvidia-smi on the node, and look for NVRM lines in the kernel log.",
    };
  }
  if (rows > 0) return undefined;
  const { detail, remedy } = failureWords(failure, onBus);
  return { reason: "driver_failed", detail, remedy };
}

function failureWords(
  failure: NvidiaFailure,
  onBus: number | undefined,
): { readonly detail: string; readonly remedy: string } {
  const said = "text" in failure ? failure.text : `Field "${failure.field}" is refused`;
  const detail = `nvidia-smi lists no GPU: ${said}` +
    (onBus === undefined ? "" : ` (the PCI bus shows ${onBus})`);
  switch (failure.kind) {
    case "version_mismatch":
      return {
        detail,
        remedy: "The driver's package was upgraded under the loaded module: what runs goes on, " +
          "nothing new can start. Drain the node and reboot it; hold the package.",
      };
    case "driver_not_loaded":
      return {
        detail,
        remedy: "Load the module (modprobe nvidia) and see dmesg when it refuses: a new kernel " +
          "without the module built for it, or secure boot without its key.",
      };
    case "library_missing":
      return {
        detail,
        remedy: "Install libnvidia-ml of the driver's version (libnvidia-compute).",
      };
    case "no_permission":
      return {
        detail,
        remedy: "Let the agent's user read and write /dev/nvidia* and check cgroups.",
      };
    case "no_devices":
      return {
        detail,
        remedy: "Look for NVRM lines in the kernel log: the driver is loaded and found no GPU " +
          "that it can use.",
      };
    case "gpu_lost":
    case "gpu_needs_reset":
      return { detail, remedy: "Drain the node, then reset the GPU or reboot." };
    default:
      return { detail, remedy: "Run nvidia-smi on the node, and look at the kernel log." };
  }
}

/** GPUs that the bus shows and the driver does not list: one that fell off early says nothing. */
function missingProblems(readings: GpuReadings): NodeProblem[] {
  if (readings.pci.kind !== "read" || readings.identity.kind !== "answered") return [];
  const listed = new Set([...readings.known.values()].map(addressOf));
  return readings.pci.gpus
    .filter((gpu) => !listed.has(gpu.address) && gpu.driver !== "vfio-pci")
    .map((gpu) => ({
      reason: "gpu_missing",
      detail: `The PCI bus shows an NVIDIA GPU at ${gpu.address} that nvidia-smi does not list; ` +
        (gpu.driver === undefined ? "no driver has it." : `the driver ${gpu.driver} has it.`),
      remedy:
        "Look for its address in the kernel log and reseat, reset or reboot; in a container, " +
        "pass it through.",
    }));
}

function addressOf(row: Row | undefined): string | undefined {
  return pciAddress(textOf(row, "pci.bus_id") ?? "");
}

/** GPUs that are gone and whose index another one has now, after the driver was loaded anew. */
function displacedProblems(readings: GpuReadings): NodeProblem[] {
  return [...displacedGpus(readings)].map((uuid) => {
    const row = readings.known.get(uuid);
    return {
      reason: "gpu_missing",
      detail: `The GPU at ${addressOf(row) ?? "an unknown address"} (${uuid}) was here and the ` +
        "driver no longer lists it.",
      remedy: "Look for its address in the kernel log and reseat, reset or reboot.",
    };
  });
}

/** Lines that begin as a row does and are not one: without UUID, or with cells too many. */
function unidentifiedProblems(readings: GpuReadings): NodeProblem[] {
  if (readings.identity.kind !== "answered") return [];
  const rows = [...readings.known].filter(([, row]) => countOf(row, "index") === undefined)
    .map(([uuid]) => `${uuid}, without an index`);
  const lines = readings.identity.value.rest.filter((line) => /^\d{1,3},/.test(line));
  return [...rows, ...lines].slice(0, 4)
    .map((line) => ({
      reason: "gpu_unidentified",
      detail: "nvidia-smi lists a GPU without index or UUID, so it cannot be used: " +
        line.slice(0, 200),
      remedy: "Update the driver; GPUs are told apart by UUIDs that begin GPU-.",
    }));
}

function topologyProblems(readings: GpuReadings): NodeProblem[] {
  if (readings.known.size < 2) return [];
  const { topology } = readings;
  const why = topology.kind === "hung"
    ? "nvidia-smi topo -m hangs"
    : topology.kind === "not_started"
    ? topology.message
    : topology.kind === "answered" && topology.value.kind === "unknown"
    ? topology.value.why +
      (topology.failure !== undefined && "text" in topology.failure
        ? ` (${topology.failure.text})`
        : "")
    : undefined;
  if (why === undefined) return [];
  return [{
    reason: "topology_unknown",
    detail: `NVLink between the GPUs is unknown: nvidia-smi topo -m is not readable, ${why}.`,
    remedy:
      "Run nvidia-smi topo -m on the node; a software RDMA device (siw, rxe) or a hidden CPU " +
      "topology makes it fail.",
  }];
}

/** Groups of fields that are not answered although GPUs are listed. */
function partialProblems(readings: GpuReadings): NodeProblem[] {
  const groups = {
    live: readings.live,
    mode: readings.mode,
    health: readings.health,
    recent: readings.recent,
    pcie: readings.pcie,
  };
  return Object.entries(groups).flatMap(([group, answer]): NodeProblem[] => {
    if (answer.kind !== "answered" || answer.failure === undefined) return [];
    if (answer.value.rows.size > 0 || readings.known.size === 0) return [];
    const { failure } = answer;
    return [{
      reason: "nvidia_smi_partial",
      detail: `nvidia-smi does not answer for ${group} values: ` +
        ("text" in failure ? failure.text : `field "${failure.field}" is refused`),
      remedy: "Run nvidia-smi -q on the node; until then these values are unknown.",
    }];
  });
}
