/** Whether GPUs are free again after an engine has ended: memory is given back later than pids. */

/** A GPU as it is used now. What is absent is unknown. */
export interface GpuUse {
  readonly uuid: string;
  readonly index: number;
  readonly usedMib?: number;
  readonly totalMib?: number;
  /** Processes that compute on it; empty also where the driver names none, as in containers. */
  readonly holders: readonly { readonly pid: number; readonly name: string }[];
}

/** What drivers, displays and the driver's own reserve hold on a card that nobody computes on. */
const IDLE_MIB_MAX = 1_024;
const IDLE_SHARE_MAX = 0.05;

/**
 * Those of `gpus` whose memory is not free. Undefined: it cannot be known, because nothing is known
 * of any of them. `uses` undefined: the driver did not answer.
 */
export function unreleased(
  gpus: readonly { readonly uuid: string }[],
  uses: readonly GpuUse[] | undefined,
): readonly GpuUse[] | undefined {
  const known = gpus.flatMap(({ uuid }) =>
    uses?.find((use) => use.uuid === uuid && use.usedMib !== undefined) ?? []
  );
  if (known.length === 0) return undefined;
  return known.filter(({ usedMib = 0, totalMib = 0 }) =>
    usedMib > Math.max(IDLE_MIB_MAX, totalMib * IDLE_SHARE_MAX)
  );
}
