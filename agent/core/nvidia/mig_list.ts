/** MIG instances, which nvidia-smi shows nowhere but in `-L` (and not in its tables). */

/** Names of instances by the UUID of the GPU they are cut from, such as `3g.40gb`. Never throws. */
export function parseMigList(stdout: string): ReadonlyMap<string, readonly string[]> {
  const instances = new Map<string, string[]>();
  let gpu: string[] | undefined;
  for (const line of stdout.slice(0, 1_000_000).split(/\r?\n/)) {
    const uuid = /^GPU \d+: .*\(UUID: (GPU-[0-9a-zA-Z-]+)\)/.exec(line)?.[1];
    if (uuid !== undefined) {
      gpu = instances.get(uuid) ?? [];
      instances.set(uuid, gpu);
    }
    const instance = /^\s+MIG (\S{1,40})\s+Device\s+\d+:/.exec(line)?.[1];
    if (instance !== undefined) gpu?.push(instance);
  }
  return instances;
}
