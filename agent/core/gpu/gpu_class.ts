/**
 * GPU class: the name under which GPUs are interchangeable, from the driver's name and the measured
 * memory. Names alone lie (one name, two memory sizes), memory alone says nothing, and matching by
 * "contains" merges what must stay apart (`gh200` contains `h200`). So the name is cleaned word by
 * word, the memory is rounded up to a nominal size, and a name nobody has seen yet goes through the
 * same steps and gets a class of its own.
 */

/** Gives every GPU named `name` (and, when set, of `memoryMib`) the class `gpuClass`. */
export interface GpuClassOverride {
  /** The name as the driver prints it, compared without regard to case. */
  readonly name: string;
  /** Measured memory in MiB; absent applies to every size. */
  readonly memoryMib?: number;
  readonly gpuClass: string;
}

/** What is known of a GPU before its class. */
export interface GpuNaming {
  /** The driver's name, whole. */
  readonly name: string;
  /** Measured memory in MiB; undefined when the driver does not say. */
  readonly memoryMib: number | undefined;
  /**
   * The driver said that memory is not available on this part, rather than failing to read it: only
   * then may a part with unified memory be judged by the system's memory.
   */
  readonly memoryNotReported: boolean;
  /** PCI device id, four hex digits. */
  readonly pciDeviceId: string | undefined;
  readonly systemMemoryMib: number | undefined;
}

/** What a GPU is for placement. Only a whole one can be placed on. */
export type GpuKind =
  | { readonly kind: "whole"; readonly gpuClass: string; readonly memoryMib: number }
  | { readonly kind: "mig"; readonly gpuClass: string }
  | { readonly kind: "vgpu"; readonly gpuClass: string }
  | { readonly kind: "memory_unknown" }
  | { readonly kind: "name_unknown" };

/** Nominal sizes in GB that cards are sold with; the measured size is rounded up to one of these. */
const NOMINAL_GB: readonly number[] = [
  ...[2, 4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 48, 64, 72, 80, 84, 94, 96],
  ...[128, 141, 144, 180, 186, 192, 252, 270, 279, 288],
];

/** A driver may count a little more than the nominal size, so a size is reached from 0.5 % above. */
const NOMINAL_TOLERANCE = 0.995;

/** Parts whose GPU memory is the system's memory: the driver reports none, and that is no fault. */
const UNIFIED_PARTS: ReadonlySet<string> = new Set(["gb10", "orin", "thor"]);

/** Words that say nothing about which card it is, or are said by the memory size. */
const DROPPED =
  /^(?:nvidia|geforce|tesla|generation|edition|gpu|ac|sxm\d*|hbm\d*[a-z]?|\d+gb?|\(nvgpu\))$/;

/** MIG instances as `nvidia-smi -L` and CUDA name them; compute instances carry a `1c.` in front. */
const MIG_NAME = /(?:^|\s)mig\s+((?:\d+c\.)?\d+g\.\d+gb(?:[+-][a-z.]+)*)/;

/** vGPU profiles end in size and series: `-20C`, `-1-20C`, `-1B4`, `-1-5CME`. */
const VGPU_NAME = /-(?:\d+-)?\d+(?:[abcq](?:me|gfx)?|b4)$/;

/** Names of boards that the driver does not know by a product name. */
const PLACEHOLDER_NAME =
  /^(?:(?:nvidia|tesla)[\s-]+)*(?:graphics[\s-]+device|pg\d+-\d+(?:\/\d+)*)$/;

/** Blanks and slashes part words; a hyphen only beside a form factor, a size or a board number. */
const WORD_BREAK =
  /[\s/]+|-(?=sxm|pci|fhhl|pg\d|\d+gb?(?![a-z0-9.]))|(?<=(?:^|[\s/-])(?:sxm\d*|\d+gb?))-/;

/** Says what the GPU is and, when it is a whole one, its class. Pure; never throws. */
export function classifyGpu(
  naming: GpuNaming,
  overrides: readonly GpuClassOverride[] = [],
): GpuKind {
  const name = naming.name.trim().toLowerCase();
  const mig = MIG_NAME.exec(name)?.[1];
  if (mig !== undefined) return { kind: "mig", gpuClass: `mig:${mig}` };
  if (VGPU_NAME.test(name) && !/sxm|pcie/.test(name)) {
    return { kind: "vgpu", gpuClass: `vgpu:${slug(name.replace(/^(?:grid|nvidia)\s+/, ""))}` };
  }
  const cleaned = PLACEHOLDER_NAME.test(name)
    ? `pci-${naming.pciDeviceId?.toLowerCase() ?? "unknown"}`
    : cleanName(name);
  if (cleaned === "") return { kind: "name_unknown" };
  const memoryMib = memoryOf(naming, cleaned);
  if (memoryMib === undefined) return { kind: "memory_unknown" };
  const override = overrides.find((each) =>
    each.name.trim().toLowerCase() === name &&
    (each.memoryMib === undefined || each.memoryMib === memoryMib)
  );
  const gpuClass = override?.gpuClass ?? `${cleaned}-${nominalGb(memoryMib)}g`;
  return { kind: "whole", gpuClass, memoryMib };
}

function memoryOf(naming: GpuNaming, cleaned: string): number | undefined {
  if (naming.memoryMib !== undefined && naming.memoryMib > 0) return naming.memoryMib;
  return naming.memoryNotReported && UNIFIED_PARTS.has(cleaned.split("-")[0] ?? "")
    ? naming.systemMemoryMib
    : undefined;
}

/** The smallest nominal size that holds the measured one; past the ladder, the rounded size. */
function nominalGb(memoryMib: number): number {
  const measuredGb = memoryMib / 1024;
  return NOMINAL_GB.find((size) => size >= measuredGb * NOMINAL_TOLERANCE) ??
    Math.round(measuredGb);
}

function cleanName(name: string): string {
  let words = name.split(WORD_BREAK)
    .map((word) => word === "max-q" ? "maxq" : word)
    .filter((word) => word !== "" && !DROPPED.test(word));
  if (words.includes("maxq")) words = words.filter((word) => word !== "workstation");
  const rtx = words.indexOf("rtx");
  if (rtx >= 0) {
    const glued = words[rtx + 1] === "pro" ? 3 : 2;
    words = [
      ...words.slice(0, rtx),
      words.slice(rtx, rtx + glued).join(""),
      ...words.slice(rtx + glued),
    ];
  }
  return slug(words.join("-"));
}

/** Only what may stand in a class: letters, digits, dots, plus and single hyphens. */
function slug(text: string): string {
  return text.replace(/[^a-z0-9.+]+/g, "-").replace(/^-+|-+$/g, "");
}
