/** What the CPU can do, from sysfs' `devices/system/cpu/modalias`. */

import type { NodeProblem } from "../problem.ts";

/** Number of AVX2 among the kernel's x86 features (word 9, bit 5). */
const AVX2 = "0125";

/**
 * A warning when an x86 CPU has no AVX2: an engine on the CPU then runs several times slower while
 * nothing looks wrong. An unreadable or another architecture's list says nothing.
 */
export function cpuProblem(modalias: string | undefined): NodeProblem | undefined {
  const features = /^cpu:type:x86,[^:]*:feature:(.*)$/i.exec(modalias?.trim() ?? "")?.[1];
  if (features === undefined) return undefined;
  const numbers = features.toUpperCase().split(",");
  // A list cut at the end of a page would miss features rather than lack them.
  if (numbers.includes(AVX2) || numbers.length < 20) return undefined;
  return {
    reason: "cpu_without_avx2",
    detail:
      "The CPU does not offer AVX2, so engines that compute on the CPU are several times slower.",
    remedy: "On a virtual machine, let its CPU type pass the host's features (host-passthrough).",
  };
}
