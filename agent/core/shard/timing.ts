/** How long things about a shard may take, in milliseconds. */
import type { ShardSpec } from "./shard.ts";

/** For a spec that says none; the catalog's own defaults. */
export const STARTUP_TIMEOUT_MS = 20 * 60_000;
export const STOP_TIMEOUT_MS = 60_000;

/** A rank that serves no HTTP is taken for ready once it has lived this long: engines that cannot
 * start a worker say so by ending it within moments. */
export const WORKER_GRACE_MS = 5_000;

/** Small engines load within a second, and somebody may be waiting for the first token. */
export const PROBE_LOADING_FIRST_MS = 300;
export const PROBE_LOADING_LATER_MS = 2_000;
export const LOADING_FIRST_MS = 30_000;

/** An idle engine is asked for one token as often: nothing for it, and the only way to know that one
 * hangs whose numbers stand still as well. */
export const PROBE_READY_MS = 30_000;
/** Work that stands still is noticed sooner when it is looked at more often. */
export const PROBE_BUSY_MS = 15_000;
/** The first request of its shape may wait for kernels to be compiled, and a long prompt for minutes
 * until its first token; but work is counted in between. */
export const HUNG_DEGRADED_MS = 90_000;
/** The engines' own watchdogs end what is stuck after 5 minutes (SGLang) or 10 (NCCL), and say in
 * their logs why. What stands still for longer than that will not go on. */
export const HUNG_FAILED_MS = 11 * 60_000;
/** The first token after a start may have to wait for kernels to be compiled. */
export const TOKEN_MS_MAX = 60_000;

/** What has not moved or answered for so long is told as suspected: no engine that works takes as long
 * for a token when it is idle, and one that is busy mostly counts something in between. */
export const SUSPECT_MS = 15_000;

/** When a shard's engine is taken for one that hangs, each in ms. */
export interface Thresholds {
  readonly tokenMs: number;
  readonly hungMs: number;
  readonly failMs: number;
}

/** What the shard's profile says, and for what it does not say what an agent goes by itself. */
export function thresholdsOf({ liveness }: Pick<ShardSpec, "liveness">): Thresholds {
  return {
    tokenMs: liveness?.tokenTimeoutMs || TOKEN_MS_MAX,
    hungMs: liveness?.hungAfterMs || HUNG_DEGRADED_MS,
    failMs: liveness?.failAfterMs || HUNG_FAILED_MS,
  };
}

/** What is wrong should be known to be right again soon after it is. */
export const PROBE_DEGRADED_MS = 10_000;
export const PROBE_ADOPTED_MS = 1_000;
/** A probe has deadlines of its own, shorter than this in sum; after that it is asked again. */
export const PROBE_LOST_MS = 180_000;
/** One failed probe may be a full queue or a lost packet. */
export const FAILED_PROBES_MAX = 2;

export const MEASURE_DRAINING_MS = 1_000;
export const COUNT_STOPPING_MS = 500;
export const COUNT_SURVIVORS_MS = 5_000;
/** The kernel frees what SIGKILL leaves within moments, except where a driver holds it. */
export const KILL_SETTLE_MS = 10_000;
/** The driver gives memory back within seconds of a process's end; what is left after this is not
 * the shard's to wait for, and discovery keeps such a GPU out of placement. */
export const GPU_RELEASE_MS = 30_000;
export const CHECK_GPUS_MS = 1_000;
/** A driver that hangs answers a check within its own deadlines, or never. */
export const GPU_ANSWER_MS = 60_000;
