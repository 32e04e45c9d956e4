/** Which interface holds the node's management address. */

import type { NodeProblem } from "../problem.ts";

/** One address of one interface, as the system lists it. */
export interface InterfaceAddress {
  readonly name: string;
  readonly address: string;
  readonly netmask: string;
}

/**
 * The name of the interface that holds `address`, or undefined when none does (behind NAT). An
 * address of 127.0.0.0/8 counts as held by the interface whose loopback network contains it.
 */
export function managementInterface(
  address: string,
  interfaces: readonly InterfaceAddress[],
): string | undefined {
  const wanted = normalised(address);
  const exact = interfaces.find((each) => normalised(each.address) === wanted);
  if (exact !== undefined) return exact.name;
  if (!/^127\.\d+\.\d+\.\d+$/.test(wanted)) return undefined;
  return interfaces.find((each) => /^127\./.test(each.address) && /^255\.0\./.test(each.netmask))
    ?.name;
}

/** Lower case, without brackets, zone and IPv4-mapping prefix, with `::` written out. */
function normalised(address: string): string {
  const bare = address.trim().toLowerCase().replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare);
  if (mapped?.[1] !== undefined) return mapped[1];
  if (!bare.includes(":")) return bare;
  const [head = "", tail] = bare.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array<string>(zeros).fill("0"), ...right]
    .map((group) => group.replace(/^0+(?=.)/, "")).join(":");
}

/** The problem of a node none of whose interfaces holds its management address. */
export function addressNotLocal(
  address: string,
  interfaces: readonly InterfaceAddress[],
): NodeProblem {
  const seen = interfaces.map((each) => `${each.address} (${each.name})`).join(", ");
  return {
    reason: "management_address_not_local",
    detail: `No interface of this node holds its management address ${address}; it has ${seen}.`,
    remedy: "Set the node's address to one that it holds; behind NAT, set advertise_address apart.",
  };
}
