/**
 * How near two PCI functions are to each other, in the words of `nvidia-smi topo -m`, by where sysfs
 * has them: a device's path names every bridge above it. It answers where that matrix does not: with
 * a single GPU, in sandboxes, and beside software RDMA devices, for which the tool fails.
 */

/** A function as sysfs has it. */
export interface PciPlace {
  /** Where its link leads, for example `../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0`. */
  readonly path: string;
  readonly numaNode: number | undefined;
}

/** From near to far: `PIX` one switch, `PXB` several, `PHB` one host bridge, `NODE`, `SYS`. */
export type Distance = "PIX" | "PXB" | "PHB" | "NODE" | "SYS";

const HOST_BRIDGE = /^pci[0-9a-f]{4,8}:[0-9a-f]{2}$/i;
const FUNCTION = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/i;

/** Undefined when it cannot be told. Never throws. */
export function pciDistance(a: PciPlace, b: PciPlace): Distance | undefined {
  const [ways, others] = [bridgesOf(a.path), bridgesOf(b.path)];
  if (ways === undefined || others === undefined) return undefined;
  if (ways[0] !== others[0]) {
    if (a.numaNode === undefined || b.numaNode === undefined) return undefined;
    return a.numaNode === b.numaNode ? "NODE" : "SYS";
  }
  let common = 0;
  while (common < Math.min(ways.length, others.length) && ways[common] === others[common]) {
    common += 1;
  }
  // Nothing but the host bridge is above both of them.
  if (common === 1) return "PHB";
  // Below a switch's upper side are one lower side and the device itself, for each of them.
  return ways.length - common <= 2 && others.length - common <= 2 ? "PIX" : "PXB";
}

/** The PCI address of the function that a device of another class sits on, as sysfs writes it. */
export function functionOf(path: string | undefined): string | undefined {
  return path?.split("/").findLast((part) => FUNCTION.test(part));
}

/** Host bridge, bridges and the function itself, from the top. */
function bridgesOf(path: string): readonly string[] | undefined {
  const parts = path.split("/");
  const top = parts.findIndex((part) => HOST_BRIDGE.test(part));
  if (top < 0) return undefined;
  const below = parts.slice(top + 1);
  const end = below.findIndex((part) => !FUNCTION.test(part));
  const functions = end < 0 ? below : below.slice(0, end);
  return functions.length === 0 ? undefined : [parts[top] ?? "", ...functions];
}

const NEAREST_FIRST: readonly string[] = ["PIX", "PXB", "PHB", "NODE", "SYS"];

/** An adapter, and where it is. */
export interface PlacedHca {
  readonly name: string;
  readonly path: string | undefined;
  readonly numaNode: number | undefined;
}

export interface HcaDistance {
  readonly name: string;
  readonly distance: string;
}

/**
 * How far each of `hcas` is from a GPU, the nearest first: by the driver's own matrix, and by sysfs
 * where that says nothing. Adapters of which neither tells are left out.
 */
export function nearHcas(
  gpu: {
    readonly adapters: readonly HcaDistance[] | undefined;
    readonly sysfsPath: string | undefined;
    readonly numaNode: number | undefined;
  },
  hcas: readonly PlacedHca[],
): readonly HcaDistance[] {
  const names = new Set(hcas.map(({ name }) => name));
  const told = (gpu.adapters ?? []).filter(({ name }) => names.has(name));
  if (told.length > 0 || gpu.sysfsPath === undefined) return told;
  const place = { path: gpu.sysfsPath, numaNode: gpu.numaNode };
  return hcaDistances(
    place,
    hcas.flatMap(({ name, path, numaNode }) =>
      path === undefined ? [] : [{ name, path, numaNode }]
    ),
  );
}

function hcaDistances(
  gpu: PciPlace,
  hcas: readonly (PciPlace & { readonly name: string })[],
): readonly HcaDistance[] {
  return hcas.flatMap((hca) => {
    const distance = pciDistance(gpu, hca);
    return distance === undefined ? [] : [{ name: hca.name, distance }];
  }).sort((a, b) => NEAREST_FIRST.indexOf(a.distance) - NEAREST_FIRST.indexOf(b.distance));
}
