/** What an operator should know of a node's GPUs, and what keeps none of them out of placement. */

import type { NodeProblem } from "../problem.ts";
import { textOf } from "../nvidia/nvidia_csv.ts";
import { pcieWidths } from "./pcie_width.ts";
import { rowOf } from "./gpu_problems.ts";
import type { GpuReadings } from "./readings.ts";

/** Samples in a row that make a slowdown more than a moment. */
const THROTTLED_SAMPLES = 3;

/** Warnings of the node about its GPUs. */
export function gpuWarnings(readings: GpuReadings): NodeProblem[] {
  const indices = (test: (uuid: string) => boolean): string =>
    [...readings.known].filter(([uuid]) => test(uuid))
      .map(([, row]) => textOf(row, "index") ?? "?").join(", ");
  const word = (uuid: string, field: string): string =>
    textOf(rowOf(readings.mode, uuid), field)?.toLowerCase() ?? "";
  const problems: NodeProblem[] = [];
  const torn = readings.wsl ? "" : indices((uuid) => word(uuid, "persistence_mode") === "disabled");
  if (torn !== "") {
    problems.push({
      reason: "gpu_persistence_off",
      detail: `Persistence mode is off on GPU ${torn}: every start of a process waits for the ` +
        "driver to set the GPU up anew.",
      remedy: "Enable nvidia-persistenced.",
    });
  }
  const changing = indices((uuid) => {
    const [current, pending] = [word(uuid, "mig.mode.current"), word(uuid, "mig.mode.pending")];
    return current !== pending && /^(?:en|dis)abled$/.test(current) &&
      /^(?:en|dis)abled$/.test(pending);
  });
  if (changing !== "") {
    problems.push({
      reason: "mig_change_pending",
      detail: `A change of MIG mode waits for a reset on GPU ${changing}.`,
      remedy: "Set the mode that is wanted (nvidia-smi -i INDEX -mig 0) and reset the GPU.",
    });
  }
  // Links that are all down are a card without a bridge; some of them are a link that was lost.
  const lossy = indices((uuid) => {
    const links = readings.nvlinks.get(uuid);
    return links !== undefined && links.active > 0 && links.inactive > 0;
  });
  if (lossy !== "") {
    problems.push({
      reason: "nvlink_inactive",
      detail: `Some NVLinks of GPU ${lossy} are inactive while others work, so that collectives ` +
        "between GPUs are slower than they should be.",
      remedy: "See nvidia-smi nvlink -s; drain the node, and reseat or replace what is between.",
    });
  }
  const slowed = indices((uuid) => (readings.throttledSamples.get(uuid) ?? 0) >= THROTTLED_SAMPLES);
  if (slowed !== "") {
    problems.push({
      reason: "gpu_throttled",
      detail:
        `The hardware has slowed GPU ${slowed} over the last ${THROTTLED_SAMPLES} readings: ` +
        "heat or power brake.",
      remedy: "Check cooling and power supplies (nvidia-smi -q -d PERFORMANCE).",
    });
  }
  return [...problems, ...narrowLinks(readings), ...faultWarnings(readings)];
}

/** Lanes do not fall away at idle, as the generation does; in a slot with fewer there are fewer. */
function narrowLinks(readings: GpuReadings): NodeProblem[] {
  const narrow = [...readings.known].flatMap(([uuid, row]) => {
    const { pcieWidth = 0, pcieWidthMax = 0 } = pcieWidths(rowOf(readings.pcie, uuid));
    return pcieWidth > 0 && pcieWidth < pcieWidthMax
      ? [`${textOf(row, "index") ?? "?"} (${pcieWidth} of ${pcieWidthMax})`]
      : [];
  });
  if (narrow.length === 0) return [];
  return [{
    reason: "gpu_pcie_narrow",
    detail: `PCIe has fewer lanes than the card could use on GPU ${narrow.join(", ")}, so that ` +
      "loading weights and traffic without NVLink are slower.",
    remedy:
      "Nothing, where the slot or riser has no more; else reseat the card, and compare with " +
      "a node like it.",
  }];
}

/** Faults that a GPU can live with until it is convenient. */
function faultWarnings(readings: GpuReadings): NodeProblem[] {
  return [...readings.faults].flatMap(([address, events]): NodeProblem[] => {
    const event = events.find((each) => each.verdict === "warn");
    if (event === undefined) return [];
    return [{
      reason: "gpu_xid",
      detail: `The kernel logged Xid ${event.xid} of the GPU at ${address}: ${event.text}`,
      remedy: "Reset the GPU when it is next idle; see NVIDIA's Xid catalog for the number.",
    }];
  });
}
