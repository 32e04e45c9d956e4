/** Which processor a program is for, from the first bytes of it. */

const MACHINES: Readonly<Record<number, string>> = { 62: "x86_64", 183: "aarch64" };

/** "x86_64", "aarch64", "another processor"; undefined when it is no ELF program (a script). */
export function machineOf(start: Uint8Array): string | undefined {
  if (start[0] !== 0x7f || start[1] !== 0x45 || start[2] !== 0x4c || start[3] !== 0x46) {
    return undefined;
  }
  const little = start[5] === 1;
  const [low = 0, high = 0] = little ? [start[18], start[19]] : [start[19], start[18]];
  return MACHINES[high * 256 + low] ?? "another processor";
}

/** Names of libraries that `ldd` did not find. */
export function missingLibraries(said: string): readonly string[] {
  return [...said.matchAll(/^\s*(\S+) => not found/gm)].map(([, name]) => name ?? "");
}
