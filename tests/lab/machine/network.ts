/**
 * The lab's network: a bridge inside of the run's own network namespace, and a namespace for each
 * node. Nothing in it has a route to anywhere else.
 */
import { runCommand } from "../command.ts";

const BRIDGE = "lab0";
const PREFIX = "10.93.0";
/** Where the lab itself is, as the nodes see it. */
export const LAB_ADDRESS = `${PREFIX}.1`;
/** The first node's last byte. */
const FIRST_NODE = 11;
export const NODES_MAX = 200;

/** Makes the bridge. The loopback of a new namespace is down. */
export async function makeBridge(): Promise<void> {
  await ip("link", "set", "lo", "up");
  await ip("link", "add", BRIDGE, "type", "bridge");
  await ip("address", "add", `${LAB_ADDRESS}/24`, "dev", BRIDGE);
  await ip("link", "set", BRIDGE, "up");
}

/** Address of the node with that number, from 0. */
export function nodeAddress(index: number): string {
  return `${PREFIX}.${FIRST_NODE + index}`;
}

/** Makes a node's namespace, named after it, with `eth0` in it. */
export async function makeNodeNetwork(name: string, index: number): Promise<void> {
  const outer = outerLink(index);
  await ip("netns", "add", name);
  await ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name);
  await ip("link", "set", outer, "master", BRIDGE, "up");
  await ip("-n", name, "link", "set", "lo", "up");
  await ip("-n", name, "address", "add", `${nodeAddress(index)}/24`, "dev", "eth0");
  await ip("-n", name, "link", "set", "eth0", "up");
}

/** Plugs the node's cable in, or pulls it out. */
export async function setLink(index: number, state: "up" | "down"): Promise<void> {
  await ip("link", "set", outerLink(index), state);
}

function outerLink(index: number): string {
  return `node${index}`;
}

async function ip(...args: readonly string[]): Promise<void> {
  await runCommand(["ip", ...args]);
}
