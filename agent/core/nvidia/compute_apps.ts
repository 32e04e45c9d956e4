/** Processes that use GPUs, from `--query-compute-apps`. */

/** The process name is last: it is free text, and may hold commas. */
export const COMPUTE_APP_FIELDS: readonly string[] = [
  "gpu_uuid",
  "pid",
  "used_gpu_memory",
  "process_name",
];

export interface ComputeApp {
  readonly gpuUuid: string;
  readonly pid: number;
  /** Undefined when the driver does not say, as in containers. */
  readonly memoryMib: number | undefined;
  readonly name: string;
}

const ROW = /^(GPU-[0-9a-z-]+), *(\d{1,10}), *([^,]*), *(.*)$/i;

/** Reads the rows; anything else (heading, sentences) is passed over. Never throws. */
export function parseComputeApps(stdout: string): readonly ComputeApp[] {
  return stdout.slice(0, 4_000_000).split(/\r?\n/).flatMap((line) => {
    const [, gpuUuid, pid, memory = "", name = ""] = ROW.exec(line.trim()) ?? [];
    if (gpuUuid === undefined || pid === undefined) return [];
    const mib = /^(\d{1,9})(?: MiB)?$/.exec(memory.trim())?.[1];
    return [{
      gpuUuid,
      pid: Number(pid),
      memoryMib: mib === undefined ? undefined : Number(mib),
      name: name.trim(),
    }];
  });
}
