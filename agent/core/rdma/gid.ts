/**
 * Which entry of a RoCE port's GID table carries RoCE v2 over the port's own IPv4 address. The
 * folklore answer is 3, and it is wrong in containers, with VLANs and with IPv6 (6 or 7 were seen).
 */

/** One used entry of the table; undefined is what cannot be read of it. */
export interface GidEntry {
  readonly index: number;
  /** Eight groups of four hex digits. */
  readonly gid: string;
  readonly type: string | undefined;
  readonly netDevice: string | undefined;
}

/**
 * The lowest index of type `RoCE v2` whose GID is the IPv4 address of its own network interface.
 * `addresses` are the node's by interface; an interface that is not among them (another network
 * namespace) is not checked. Undefined: no such entry, and then NCCL must choose by itself.
 */
export function roceGidIndex(
  entries: readonly GidEntry[],
  addresses: ReadonlyMap<string, readonly string[]>,
): number | undefined {
  const usable = entries.filter(({ gid, type, netDevice }) => {
    const address = mappedIpv4(gid);
    if (type !== "RoCE v2" || address === undefined) return false;
    const own = netDevice === undefined ? undefined : addresses.get(netDevice);
    return own === undefined || own.includes(address);
  });
  return usable.length === 0 ? undefined : Math.min(...usable.map((entry) => entry.index));
}

/** `0000:…:ffff:c000:0248` → `192.0.2.72`; undefined for any other GID. */
function mappedIpv4(gid: string): string | undefined {
  const [, high, low] = /^(?:0{4}:){5}ffff:([0-9a-f]{4}):([0-9a-f]{4})$/i.exec(gid.trim()) ?? [];
  if (high === undefined || low === undefined) return undefined;
  return [high, low].flatMap((group) => [group.slice(0, 2), group.slice(2)])
    .map((byte) => parseInt(byte, 16)).join(".");
}
