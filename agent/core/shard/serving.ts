/** A shard whose processes run: while it loads, serves, limps, or finishes what it has. */
import { formatDurationMs } from "@heddle/common/duration";
import type { Effect, EngineLoad, ProbeOutcome, ShardEvent } from "./event.ts";
import type { EpochMs, ProcessRef, Shard, ShardState, StateOf } from "./shard.ts";
import { explained } from "./explained.ts";
import { isBusy, nextStall } from "./stall.ts";
import { end, fail, stop } from "./stopping.ts";
import {
  ADOPT_READY_TIMEOUT_MS,
  FAILED_PROBES_MAX,
  LOADING_FIRST_MS,
  MEASURE_DRAINING_MS,
  PROBE_ADOPTED_MS,
  PROBE_BUSY_MS,
  PROBE_DEGRADED_MS,
  PROBE_LOADING_FIRST_MS,
  PROBE_LOADING_LATER_MS,
  PROBE_LOST_MS,
  PROBE_READY_MS,
  STARTUP_TIMEOUT_MS,
  thresholdsOf,
} from "./timing.ts";

interface Step {
  readonly shard: Shard;
  readonly effects: readonly Effect[];
}

type Serving = StateOf<"loading"> | StateOf<"ready"> | StateOf<"degraded"> | StateOf<"draining">;

/** One step of a shard that runs. */
export function serving(shard: Shard, state: Serving, event: ShardEvent, now: EpochMs): Step {
  switch (event.type) {
    case "exited":
      return exited(shard, state, event, now);
    case "resumed":
      return resumed(shard, state, event.live, now);
    case "stop":
      return stopWhenIdle(shard, state, event, now);
    case "tick":
      return tick(shard, state, now);
    case "probed":
      return probed(shard, state, event, now);
    case "measured": {
      const { running, waiting } = event.load;
      if (state.kind !== "draining" || running !== 0 || waiting !== 0) return keep(shard);
      return finish(shard, state, now);
    }
    default:
      return keep(shard);
  }
}

function keep(shard: Shard): Step {
  return { shard, effects: [] };
}

function become(shard: Shard, state: ShardState, now: EpochMs): Step {
  const since = state.kind === shard.state.kind ? shard.since : now;
  return { shard: { ...shard, since, state }, effects: [] };
}

function exited(
  shard: Shard,
  state: Serving,
  event: Extract<ShardEvent, { type: "exited" }>,
  now: EpochMs,
): Step {
  const process = state.processes.find(({ handle }) => handle === event.handle);
  if (process === undefined) return keep(shard);
  if (state.kind === "draining") {
    return end(shard, {
      ending: { kind: "stopped", reason: state.reason },
      processes: state.processes,
      planned: [],
      gracefully: false,
    }, now);
  }
  return fail(shard, {
    processes: state.processes,
    failure: explained({
      reason: "process_exited",
      message: exitWords(process, event.exit, state.kind === "loading"),
      permanent: false,
      ...(event.exit === undefined ? {} : { exit: event.exit }),
      logTail: [...event.logTail],
    }, event.diagnosis),
  }, now);
}

function exitWords(
  process: ProcessRef,
  exit: Extract<ShardEvent, { type: "exited" }>["exit"],
  loading: boolean,
): string {
  const when = loading ? "while it loaded" : "while it served";
  const how = exit === undefined
    ? "ended and left no record: it was killed together with what watched it"
    : exit.outOfMemory
    ? "was killed because memory ran out"
    : exit.signal !== ""
    ? `was ended by ${exit.signal}`
    : `exited with code ${exit.code ?? "unknown"}`;
  return `Process ${process.name} (pid ${process.mainPid ?? process.pid}) ${how} ${when}`;
}

function resumed(
  shard: Shard,
  state: Serving,
  live: readonly ProcessRef[],
  now: EpochMs,
): Step {
  const alive = new Set(live.map(({ handle }) => handle));
  // What is missing is told by its watcher, with its exit record.
  if (state.processes.some(({ handle }) => !alive.has(handle))) return keep(shard);
  switch (state.kind) {
    case "loading":
      return become(shard, { ...state, nextProbeAt: Math.min(state.nextProbeAt, now) }, now);
    case "ready":
    case "degraded": {
      if (shard.spec.rank !== 0) return keep(shard);
      const { maxModelLen } = state;
      return become(shard, {
        kind: "ready",
        processes: state.processes,
        nextProbeAt: now,
        failedProbes: 0,
        ...(maxModelLen === undefined ? {} : { maxModelLen }),
        recheckBy: now + ADOPT_READY_TIMEOUT_MS,
      }, now);
    }
    case "draining":
      return become(shard, { ...state, nextMeasureAt: now }, now);
    default:
      return state satisfies never;
  }
}

function stopWhenIdle(
  shard: Shard,
  state: Serving,
  event: Extract<ShardEvent, { type: "stop" }>,
  now: EpochMs,
): Step {
  const ordered = { ...shard, revision: event.revision };
  if (state.kind === "draining") {
    const until = Math.min(state.until, now + event.graceMs);
    return become(ordered, { ...state, until, nextMeasureAt: now }, now);
  }
  if (state.kind === "loading" || event.graceMs === 0) return stop(shard, event, now);
  const { processes, maxModelLen } = state;
  return become(ordered, {
    kind: "draining",
    processes,
    reason: event.reason,
    until: now + event.graceMs,
    nextMeasureAt: now,
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  }, now);
}

function finish(shard: Shard, state: StateOf<"draining">, now: EpochMs): Step {
  return end(shard, {
    ending: { kind: "stopped", reason: state.reason },
    processes: state.processes,
    planned: [],
    gracefully: true,
  }, now);
}

function tick(shard: Shard, state: Serving, now: EpochMs): Step {
  const leader = shard.spec.rank === 0;
  switch (state.kind) {
    case "loading":
      if (now >= state.deadline) return tooLate(shard, state, now);
      if (now < state.nextProbeAt) return keep(shard);
      return leader
        ? probe(shard, { ...state, nextProbeAt: now + PROBE_LOST_MS }, "always")
        : become(shard, readyState(state.processes, undefined, now), now);
    case "ready":
      if (!leader) return keep(shard);
      if (state.recheckBy !== undefined && now >= state.recheckBy) {
        return degrade(shard, state, {
          reason: "adopt_not_ready",
          message: "It ran before the agent restarted and has not answered since",
        }, now);
      }
      return now < state.nextProbeAt
        ? keep(shard)
        : probe(shard, { ...state, nextProbeAt: now + PROBE_LOST_MS }, "when_idle");
    case "degraded":
      return now < state.nextProbeAt
        ? keep(shard)
        : probe(shard, { ...state, nextProbeAt: now + PROBE_LOST_MS }, "when_idle");
    case "draining":
      if (now >= state.until) return finish(shard, state, now);
      if (now < state.nextMeasureAt) return keep(shard);
      return {
        shard: { ...shard, state: { ...state, nextMeasureAt: now + MEASURE_DRAINING_MS } },
        // Only the leader knows; the other ranks end with it.
        effects: leader ? [{ type: "measure" }] : [],
      };
    default:
      return state satisfies never;
  }
}

function probe(shard: Shard, state: ShardState, token: "always" | "when_idle"): Step {
  return { shard: { ...shard, state }, effects: [{ type: "probe", token }] };
}

function tooLate(shard: Shard, state: StateOf<"loading">, now: EpochMs): Step {
  const limitMs = shard.spec.startupTimeoutMs || STARTUP_TIMEOUT_MS;
  const last = state.progress === "" ? "" : `; last seen: ${state.progress}`;
  return end(shard, {
    ending: {
      kind: "failed",
      failure: {
        reason: "startup_timeout",
        message: `Not ready within its startup_timeout of ${Math.round(limitMs / 1_000)} s${last}`,
        permanent: false,
        logTail: [],
      },
    },
    processes: state.processes,
    planned: [],
    gracefully: true,
  }, now);
}

type Probed = Extract<ShardEvent, { type: "probed" }>;

function probed(shard: Shard, state: Serving, event: Probed, now: EpochMs): Step {
  const { outcome } = event;
  switch (state.kind) {
    case "loading": {
      if (outcome.kind === "ready") {
        return become(shard, readyState(state.processes, outcome.maxModelLen, now), now);
      }
      const early = now - shard.since < LOADING_FIRST_MS;
      const wait = early ? PROBE_LOADING_FIRST_MS : PROBE_LOADING_LATER_MS;
      return become(shard, { ...state, progress: outcome.why, nextProbeAt: now + wait }, now);
    }
    case "ready":
      return probedReady(shard, state, event, now);
    case "degraded":
      return probedDegraded(shard, state, event, now);
    case "draining":
      return keep(shard);
    default:
      return state satisfies never;
  }
}

function probedReady(
  shard: Shard,
  state: StateOf<"ready">,
  { outcome, load }: Probed,
  now: EpochMs,
): Step {
  if (outcome.kind === "ready") {
    const { recheckBy: _, stall: before, ...rest } = state;
    const stall = nextStall(before, load, now);
    if (stall !== undefined && now - stall.since >= thresholdsOf(shard.spec).hungMs) {
      return degrade(shard, { ...state, stall }, { ...HUNG, hungSince: stall.since }, now);
    }
    return become(shard, {
      ...rest,
      failedProbes: 0,
      nextProbeAt: now + (isBusy(load) ? PROBE_BUSY_MS : PROBE_READY_MS),
      ...(stall === undefined ? {} : { stall }),
      ...lengthOf(outcome),
    }, now);
  }
  if (state.recheckBy !== undefined) {
    return become(shard, { ...state, nextProbeAt: now + PROBE_ADOPTED_MS }, now);
  }
  if (state.failedProbes + 1 < FAILED_PROBES_MAX) {
    return become(shard, {
      ...state,
      failedProbes: state.failedProbes + 1,
      nextProbeAt: now + PROBE_DEGRADED_MS,
    }, now);
  }
  // An idle engine that gives no token when asked hangs as one does whose requests stand still.
  const hung = outcome.kind === "wrong" && outcome.reason === "no_token" && knowsLoad(load);
  return degrade(shard, state, { ...wordsOf(outcome), ...(hung ? { hungSince: now } : {}) }, now);
}

function probedDegraded(
  shard: Shard,
  state: StateOf<"degraded">,
  event: Probed,
  now: EpochMs,
): Step {
  const { outcome, load } = event;
  const stall = nextStall(state.stall, load, now);
  const { hungSince } = state;
  if (hungSince !== undefined && !provesWork(state, event)) {
    const noToken = outcome.kind === "wrong" && outcome.reason === "no_token";
    const standsStill = stall !== undefined && stall.progress === state.stall?.progress;
    if (now - hungSince >= thresholdsOf(shard.spec).failMs && (noToken || standsStill)) {
      return hung(shard, state, now);
    }
    const { stall: _, ...rest } = state;
    return degrade(shard, { ...rest, ...(stall === undefined ? {} : { stall }) }, {
      ...(outcome.kind === "ready" ? HUNG : wordsOf(outcome)),
      hungSince,
    }, now);
  }
  return outcome.kind === "ready"
    ? become(
      shard,
      readyState(state.processes, outcome.maxModelLen ?? state.maxModelLen, now),
      now,
    )
    : degrade(shard, state, wordsOf(outcome), now);
}

// A busy engine was asked for no token: that it answers says nothing before its counters move.
function provesWork(
  { stall }: StateOf<"degraded">,
  { outcome, load }: Probed,
): boolean {
  if (outcome.kind !== "ready") return false;
  if (!isBusy(load) || load?.progress === undefined) return true;
  return stall !== undefined && stall.progress !== load.progress;
}

const HUNG = {
  reason: "engine_hung",
  message: "It answers /health, but requests run and none of its counters of work has moved",
};

function hung(shard: Shard, state: StateOf<"degraded">, now: EpochMs): Step {
  const { failMs } = thresholdsOf(shard.spec);
  return fail(shard, {
    processes: state.processes,
    failure: {
      reason: "engine_hung",
      message:
        `It has given no token for ${
          formatDurationMs(failMs)
        }: ${state.message}. Often one rank, or the fabric between them, is stuck; look at ` +
        "which rank's log stopped first",
      permanent: false,
      logTail: [],
    },
  }, now);
}

// Without a reading a slow token may be one that waits its turn.
function knowsLoad(load: EngineLoad | undefined): boolean {
  return load?.running !== undefined;
}

function wordsOf(outcome: Exclude<ProbeOutcome, { kind: "ready" }>) {
  return outcome.kind === "wrong"
    ? { reason: outcome.reason, message: outcome.why }
    : { reason: "not_answering", message: outcome.why };
}

function degrade(
  shard: Shard,
  state: StateOf<"ready"> | StateOf<"degraded">,
  words: { readonly reason: string; readonly message: string; readonly hungSince?: EpochMs },
  now: EpochMs,
): Step {
  const { processes, maxModelLen, stall } = state;
  return become(shard, {
    kind: "degraded",
    processes,
    nextProbeAt: now + PROBE_DEGRADED_MS,
    ...words,
    ...(stall === undefined || words.hungSince === undefined ? {} : { stall }),
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  }, now);
}

function readyState(
  processes: StateOf<"ready">["processes"],
  maxModelLen: number | undefined,
  now: EpochMs,
): StateOf<"ready"> {
  return {
    kind: "ready",
    processes,
    nextProbeAt: now + PROBE_READY_MS,
    failedProbes: 0,
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  };
}

function lengthOf(outcome: { readonly maxModelLen?: number }): { maxModelLen?: number } {
  return outcome.maxModelLen === undefined ? {} : { maxModelLen: outcome.maxModelLen };
}
