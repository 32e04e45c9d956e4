/** Which NVLinks are up, from `nvidia-smi nvlink -s`. */

export interface NvlinkStatus {
  readonly active: number;
  readonly inactive: number;
}

/** Links by the UUID of their GPU. GPUs without NVLink, or with MIG, have none. Never throws. */
export function parseNvlinkStatus(stdout: string): ReadonlyMap<string, NvlinkStatus> {
  const statuses = new Map<string, NvlinkStatus>();
  let uuid: string | undefined;
  for (const line of stdout.slice(0, 1_000_000).split(/\r?\n/)) {
    uuid = /^GPU \d+: .*\(UUID: (GPU-[0-9a-zA-Z-]+)\)/.exec(line)?.[1] ?? uuid;
    // All of them being down is told in a sentence of its own, without their number.
    if (uuid !== undefined && /all links are inactive/i.test(line) && !statuses.has(uuid)) {
      statuses.set(uuid, { active: 0, inactive: 0 });
    }
    const state = /^\s+Link \d+: (?:(\d+(?:\.\d+)?) GB\/s|(<inactive>))\s*$/.exec(line);
    if (uuid === undefined || state === null) continue;
    const { active, inactive } = statuses.get(uuid) ?? { active: 0, inactive: 0 };
    statuses.set(
      uuid,
      state[2] === undefined
        ? { active: active + 1, inactive }
        : { active, inactive: inactive + 1 },
    );
  }
  return statuses;
}
