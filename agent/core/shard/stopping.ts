/**
 * The end of a shard: the engine is asked to end, then what is left is killed, then it is looked
 * until nothing is left. Whatever is reported as stopped or failed holds no GPU.
 */
import type { Effect, EffectOf, ShardEvent } from "./event.ts";
import { alsoExplained } from "./explained.ts";
import type {
  Ending,
  EpochMs,
  Failure,
  PlannedProcess,
  ProcessRef,
  Shard,
  StateOf,
} from "./shard.ts";
import { gpuWords } from "../diagnosis/evidence.ts";
import {
  CHECK_GPUS_MS,
  COUNT_STOPPING_MS,
  COUNT_SURVIVORS_MS,
  GPU_ANSWER_MS,
  GPU_RELEASE_MS,
  KILL_SETTLE_MS,
  STOP_TIMEOUT_MS,
} from "./timing.ts";

interface Step {
  readonly shard: Shard;
  readonly effects: readonly Effect[];
}

/** Ends a shard of which nothing runs. */
export function nothingRuns(shard: Shard, ending: Ending, now: EpochMs): Step {
  return { shard: { ...shard, since: now, state: { ...ending } }, effects: [] };
}

/** Ends a shard that control wants no more. */
export function stop(
  shard: Shard,
  event: Extract<ShardEvent, { type: "stop" }>,
  now: EpochMs,
): Step {
  return end({ ...shard, revision: event.revision }, {
    ending: { kind: "stopped", reason: event.reason },
    processes: processesOf(shard),
    planned: shard.state.kind === "starting" ? shard.state.planned : [],
    gracefully: true,
  }, now);
}

/** Ends a shard that cannot go on: what still runs of it has nobody to work for. */
export function fail(
  shard: Shard,
  cause: { readonly processes: readonly ProcessRef[]; readonly failure: Failure },
  now: EpochMs,
): Step {
  return end(shard, {
    ending: { kind: "failed", failure: cause.failure },
    processes: cause.processes,
    planned: shard.state.kind === "starting" ? shard.state.planned : [],
    gracefully: false,
  }, now);
}

/** Asks the processes to end, or kills them; then they are counted until none is left. */
export function end(
  shard: Shard,
  how: {
    readonly ending: Ending;
    readonly processes: readonly ProcessRef[];
    readonly planned: readonly PlannedProcess[];
    readonly gracefully: boolean;
  },
  now: EpochMs,
): Step {
  const { ending, processes, planned } = how;
  if (processes.length === 0 && planned.length === 0) return nothingRuns(shard, ending, now);
  const stopMs = shard.spec.stopTimeoutMs || STOP_TIMEOUT_MS;
  return {
    shard: {
      ...shard,
      since: now,
      state: {
        kind: "stopping",
        planned: [...planned],
        processes: [...processes],
        ending,
        killAt: how.gracefully ? now + stopMs : now,
        killed: !how.gracefully,
        nextCountAt: now + COUNT_STOPPING_MS,
        survivors: [],
      },
    },
    effects: processes.length === 0 ? [] : [
      { type: how.gracefully ? "terminate" : "kill", processes },
      ...(how.gracefully ? [] : [{ type: "count", processes } as const]),
    ],
  };
}

/** One step of a shard that is being ended. */
export function stopping(
  shard: Shard,
  state: StateOf<"stopping">,
  event: ShardEvent,
  now: EpochMs,
): Step {
  const next = (change: Partial<StateOf<"stopping">>, effects: readonly Effect[] = []): Step => ({
    shard: { ...shard, state: { ...state, ...change } },
    effects,
  });
  switch (event.type) {
    case "launched":
    case "launch_failed": {
      // It was told to end while it was being started.
      const processes = [...state.processes, ...event.processes];
      if (processes.length === 0) return nothingRuns(shard, state.ending, now);
      return next({ planned: [], processes }, [{
        type: state.killed ? "kill" : "terminate",
        processes: event.processes,
      }]);
    }
    case "resumed":
      return resumed(shard, state, event.live, now);
    case "exited":
      return next({ ending: withExit(state.ending, event) }, [count(state.processes)]);
    case "counted":
      return counted(shard, state, event, now);
    case "gpus_checked":
      return gpusChecked(shard, state, event, now);
    case "stop":
      return { shard: { ...shard, revision: event.revision }, effects: [] };
    case "tick":
      if (state.freeBy !== undefined) return waitForGpus(shard, state, now);
      if (!state.killed && now >= state.killAt) {
        return next({ killed: true, killAt: now, nextCountAt: now + COUNT_STOPPING_MS }, [
          { type: "kill", processes: state.processes },
          count(state.processes),
        ]);
      }
      if (now < state.nextCountAt) return next({});
      return next({ nextCountAt: now + COUNT_STOPPING_MS }, [
        // What forked while it was killed is killed in the next round.
        ...(state.killed ? [{ type: "kill", processes: state.processes } as const] : []),
        count(state.processes),
      ]);
    default:
      return next({});
  }
}

function counted(
  shard: Shard,
  state: StateOf<"stopping">,
  { pids, words = [] }: Extract<ShardEvent, { type: "counted" }>,
  now: EpochMs,
): Step {
  if (state.freeBy !== undefined) return { shard, effects: [] };
  if (pids.length === 0 && state.planned.length === 0) {
    if (shard.spec.gpus.length === 0) return nothingRuns(shard, state.ending, now);
    const waiting: StateOf<"stopping"> = {
      ...state,
      survivors: [],
      survivorWords: [],
      freeBy: now + GPU_RELEASE_MS,
      nextCountAt: now + CHECK_GPUS_MS,
    };
    return { shard: { ...shard, state: waiting }, effects: [{ type: "check_gpus" }] };
  }
  if (!state.killed || now < state.killAt + KILL_SETTLE_MS) return { shard, effects: [] };
  return {
    shard: {
      ...shard,
      state: {
        ...state,
        survivors: [...pids],
        survivorWords: [...words],
        nextCountAt: now + COUNT_SURVIVORS_MS,
      },
    },
    effects: [],
  };
}

// A driver that does not answer would otherwise keep the shard for ever.
function waitForGpus(
  shard: Shard,
  state: StateOf<"stopping">,
  now: EpochMs,
): Step {
  if (now >= (state.freeBy ?? 0) + GPU_ANSWER_MS) return nothingRuns(shard, state.ending, now);
  if (now < state.nextCountAt) return { shard, effects: [] };
  return {
    shard: { ...shard, state: { ...state, nextCountAt: now + CHECK_GPUS_MS } },
    effects: [{ type: "check_gpus" }],
  };
}

function gpusChecked(
  shard: Shard,
  state: StateOf<"stopping">,
  { unreleased }: Extract<ShardEvent, { type: "gpus_checked" }>,
  now: EpochMs,
): Step {
  if (state.freeBy === undefined) return { shard, effects: [] };
  // Unknown is not busy for ever.
  if (unreleased === undefined || unreleased.length === 0) {
    return nothingRuns(shard, state.ending, now);
  }
  if (now < state.freeBy) return { shard, effects: [] };
  const note = `${gpuWords(unreleased).join("; ")}, though nothing of the shard runs any more`;
  const { ending } = state;
  return nothingRuns(
    shard,
    ending.kind === "stopped" ? { ...ending, message: note } : {
      ...ending,
      failure: { ...ending.failure, message: `${ending.failure.message}. ${note}` },
    },
    now,
  );
}

function resumed(
  shard: Shard,
  state: StateOf<"stopping">,
  live: readonly ProcessRef[],
  now: EpochMs,
): Step {
  // A process that is gone may have left others behind, so all that were known are counted.
  const known = new Set(state.processes.map(({ handle }) => handle));
  const processes = [...state.processes, ...live.filter(({ handle }) => !known.has(handle))];
  if (processes.length === 0) return nothingRuns(shard, state.ending, now);
  const { freeBy: _, ...rest } = state;
  return {
    shard: { ...shard, state: { ...rest, planned: [], processes, nextCountAt: now } },
    effects: [
      { type: state.killed ? "kill" : "terminate", processes: live },
      count(processes),
    ],
  };
}

function count(processes: readonly ProcessRef[]): EffectOf<"count"> {
  return { type: "count", processes };
}

// The first process that ended explains a failure best; those that were ended after it do not.
function withExit(ending: Ending, event: Extract<ShardEvent, { type: "exited" }>): Ending {
  if (ending.kind === "stopped" || ending.failure.exit !== undefined) return ending;
  return {
    kind: "failed",
    failure: {
      ...alsoExplained(ending.failure, event.diagnosis),
      ...(event.exit === undefined ? {} : { exit: event.exit }),
      logTail: ending.failure.logTail.length > 0 ? ending.failure.logTail : [...event.logTail],
    },
  };
}

function processesOf(shard: Shard): readonly ProcessRef[] {
  const { state } = shard;
  return "processes" in state ? state.processes : [];
}
