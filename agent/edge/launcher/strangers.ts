/** Tells what we started from what others did, among processes that a driver names. */
import { callShim } from "./shim.ts";

/** More are never asked about: whoever holds a GPU with hundreds of processes is known by some. */
const PIDS_MAX = 64;

/**
 * Which of `pids` live and belong to nothing that was started for a folder below `stateDirectory`, to
 * no unit of Heddle's and not to this agent; each with its name. What cannot be told is not called a
 * stranger. Throws `system` when the shim cannot be run.
 */
export async function strangersAmong(
  { shim, stateDirectory }: { readonly shim: string; readonly stateDirectory: string },
  pids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  if (pids.length === 0) return new Map();
  const asked = pids.slice(0, PIDS_MAX).map(String);
  const { lines } = await callShim(shim, ["strangers", stateDirectory, ...asked]);
  return new Map(lines.map((line) => {
    const [pid = "", , , , ...name] = line.split(" ");
    return [Number(pid), name.join(" ")];
  }));
}

/**
 * Whether pids here are those that a driver tells. In a container that has numbers of its own they
 * are not, and our own engines would look like strangers.
 */
export async function pidsAreTheMachines(shim: string): Promise<boolean> {
  return (await callShim(shim, ["pid-space"])).lines[0] === "machine";
}
