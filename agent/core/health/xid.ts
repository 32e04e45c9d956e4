/**
 * GPU faults in the kernel log. nvidia-smi does not show them at all, and some make a card useless
 * until a reset while every number of it looks perfect. What is found holds until the next boot,
 * since the log of a boot is read from its beginning.
 */

import { pciAddress } from "../nvidia/pci_address.ts";

/** What to do about a fault. */
export type XidVerdict =
  /** The GPU is out until it is reset, rebooted or replaced. */
  | "out"
  /** The NVLink group is out. */
  | "nvlink"
  /** Worth draining at leisure. */
  | "warn"
  /** The application's fault, or none: go on scheduling. */
  | "ignore";

/** One fault of one GPU. */
export interface XidEvent {
  /** Normalised PCI address of the GPU. */
  readonly pciAddress: string;
  /** Undefined: the GPU fell off the bus without an Xid. */
  readonly xid: number | undefined;
  readonly verdict: XidVerdict;
  /** The driver's words, at most 160 characters. */
  readonly text: string;
}

const OUT: ReadonlySet<number> = new Set([
  ...[46, 48, 54, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158],
]);
const WARN: ReadonlySet<number> = new Set([63, 92, 94, 157, 160, 161]);
const NVLINK: ReadonlySet<number> = new Set([74, 144, 145, 146, 147, 148, 149, 150]);

/** `NVRM: Xid (PCI:0000:05:00): 79, …`, and without `PCI:` from older drivers. */
const XID_LINE = /NVRM: Xid \((?:PCI:)?([0-9a-f:.]{7,20})\): (\d{1,5}),?(.*)$/i;

/** A GPU that falls off while its driver looks for it says so without an Xid. */
const FALLEN_LINE = /NVRM: The NVIDIA GPU ([0-9a-f:.]{7,20}).*fallen off the bus/i;

/** The fault in one line of the kernel log, or undefined. Never throws. */
export function parseXid(line: string): XidEvent | undefined {
  const [, address = "", number, rest = ""] = XID_LINE.exec(line) ?? [];
  if (number !== undefined) {
    const pci = pciAddress(address);
    if (pci === undefined) return undefined;
    const text = rest.trim().slice(0, 160);
    return { pciAddress: pci, xid: Number(number), verdict: verdictOf(Number(number), text), text };
  }
  const fallen = pciAddress(FALLEN_LINE.exec(line)?.[1] ?? "");
  if (fallen === undefined) return undefined;
  return { pciAddress: fallen, xid: undefined, verdict: "out", text: "fallen off the bus" };
}

/** A line of the kernel's log from which `parseXid` reads the same again. */
export function xidLine({ pciAddress, xid, text }: XidEvent): string {
  return xid === undefined
    ? `NVRM: The NVIDIA GPU ${pciAddress}.0 has fallen off the bus`
    : `NVRM: Xid (PCI:${pciAddress}): ${xid}, ${text}`;
}

function verdictOf(xid: number, text: string): XidVerdict {
  if (OUT.has(xid)) return "out";
  // 144 to 150 come in variants, and most of them are not fatal.
  if (NVLINK.has(xid)) return xid === 74 || /(?<!non)fatal/i.test(text) ? "nvlink" : "ignore";
  // "GPU recovery action changed from … to …" names what is asked for.
  if (xid === 154) return /\bto\b[^(]*\(None\)|\bto\b.*\bNone\b/i.test(text) ? "ignore" : "out";
  return WARN.has(xid) ? "warn" : "ignore";
}
