/**
 * What went wrong in a call of nvidia-smi. Its texts come on stdout, data may follow them, and exit
 * codes are those of NVML; a text says more than a code, so texts are looked at first.
 */

import { pciAddress } from "./pci_address.ts";

/** A finished call, as far as errors are concerned. */
export interface FinishedCall {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type NvidiaFailure =
  /** The whole call was refused for this field; without it the others would have been answered. */
  | { readonly kind: "field_refused"; readonly field: string }
  | { readonly kind: "version_mismatch"; readonly text: string }
  | { readonly kind: "driver_not_loaded"; readonly text: string }
  | { readonly kind: "library_missing"; readonly text: string }
  | { readonly kind: "no_permission"; readonly text: string }
  | { readonly kind: "no_devices"; readonly text: string }
  /** Some GPU is gone; rows of the others are good. */
  | { readonly kind: "gpu_lost"; readonly pciAddresses: readonly string[]; readonly text: string }
  | { readonly kind: "gpu_needs_reset"; readonly text: string }
  /** Data is printed all the same. */
  | { readonly kind: "inforom_corrupt"; readonly text: string }
  | { readonly kind: "other"; readonly code: number; readonly text: string };

type Kind = Exclude<NvidiaFailure["kind"], "field_refused" | "gpu_lost" | "other">;

const TEXTS: readonly (readonly [RegExp, Kind])[] = [
  [/driver\/library version mismatch/i, "version_mismatch"],
  [/couldn't communicate with the nvidia driver|driver is not loaded/i, "driver_not_loaded"],
  [/couldn't find libnvidia-ml|libnvidia-ml\.so[.\d]* (?:library|not found)/i, "library_missing"],
  [/insufficient permissions to|blocked by (?:the )?(?:operating system|cgroup)/i, "no_permission"],
  [/no devices were found/i, "no_devices"],
  [/infoROM is corrupted/i, "inforom_corrupt"],
];

/** Exit codes of nvidia-smi, which are NVML's. */
const CODES: Readonly<Record<number, Kind>> = {
  4: "no_permission",
  6: "no_devices",
  9: "driver_not_loaded",
  12: "library_missing",
  14: "inforom_corrupt",
  16: "gpu_needs_reset",
  17: "no_permission",
  18: "version_mismatch",
};

const GPU_LOST = 15;

/** The failure of a call, or undefined when it says none. Never throws. */
export function failureOf(call: FinishedCall): NvidiaFailure | undefined {
  const all = `${call.stdout}\n${call.stderr}`;
  const field = /Field "([^"\n]{1,200})" is not a valid field to query/.exec(all)?.[1];
  if (field !== undefined) return { kind: "field_refused", field };
  const text = sentenceOf(call);
  const lost = lostGpus(all);
  if (lost.length > 0 || call.code === GPU_LOST) {
    return { kind: "gpu_lost", pciAddresses: lost, text };
  }
  const kind = TEXTS.find(([pattern]) => pattern.test(all))?.[1] ??
    (Object.hasOwn(CODES, call.code) ? CODES[call.code] : undefined);
  if (kind !== undefined) return { kind, text };
  return call.code === 0 ? undefined : { kind: "other", code: call.code, text };
}

/** Addresses out of `Unable to determine the device handle for GPU0000:65:00.0: …`, all of them. */
function lostGpus(text: string): string[] {
  const found = new Set<string>();
  for (const match of text.matchAll(/device handle for GPU ?([0-9A-Fa-f:.]{7,20})/g)) {
    const address = pciAddress(match[1] ?? "");
    if (address !== undefined) found.add(address);
  }
  return [...found];
}

/** The first sentence of the output that is not a table row, for people; at most 200 characters. */
function sentenceOf(call: FinishedCall): string {
  const line = `${call.stdout}\n${call.stderr}`.split(/\r?\n/).map((each) => each.trim())
    .find((each) => / .* /.test(each) && !/^\d+,|, GPU-|^\[/.test(each));
  return (line ?? `exit code ${call.code}`).slice(0, 200);
}
