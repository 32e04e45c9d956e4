/** A shard whose processes run: while it loads, serves, limps, or finishes what it has. */
import type { ShardEvent } from "../event.ts";
import type { EpochMs, ProcessRef, Shard, ShardState, StateOf } from "../shard.ts";
import { explained } from "../explained.ts";
import { end, fail, stop } from "../stopping.ts";
import { MEASURE_DRAINING_MS, PROBE_LOST_MS, STARTUP_TIMEOUT_MS } from "../timing.ts";
import { become, degrade, keep, readyState, type Serving, type Step } from "./becoming.ts";
import { linksJudged } from "./links.ts";
import { probed } from "./probed.ts";
import { ofSilence, tellAt } from "./suspicion.ts";

/** One step of a shard that runs. */
export function serving(shard: Shard, state: Serving, event: ShardEvent, now: EpochMs): Step {
  switch (event.type) {
    case "exited":
      return exited(shard, state, event, now);
    case "resumed":
      return resumed(shard, state, event, now);
    case "stop":
      return stopWhenIdle(shard, state, event, now);
    case "tick":
      return tick(shard, state, now);
    case "links_judged":
      return linksJudged(shard, state, event.fault, now);
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
  // One that ended at once was never seen with a pid.
  const pid = process.mainPid ?? process.pid;
  return `Process ${process.name} ${pid === 0 ? "" : `(pid ${pid}) `}${how} ${when}`;
}

const NOT_ANSWERED = {
  reason: "adopt_not_ready",
  message: "It ran before the agent restarted and has not answered since",
};

function resumed(
  shard: Shard,
  state: Serving,
  { live, adoptReadyMs }: Extract<ShardEvent, { type: "resumed" }>,
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
      if (state.kind === "degraded" && state.linkFault !== undefined) {
        // Its links are as bad as they were until somebody has looked at them again.
        const { hungSince: _, stall: __, ...rest } = state;
        return become(shard, { ...rest, ...NOT_ANSWERED, nextProbeAt: now }, now);
      }
      const { maxModelLen } = state;
      return become(shard, {
        kind: "ready",
        processes: state.processes,
        nextProbeAt: now,
        failedProbes: 0,
        ...(maxModelLen === undefined ? {} : { maxModelLen }),
        recheckBy: now + adoptReadyMs,
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
        return degrade(shard, state, NOT_ANSWERED, now);
      }
      return now < state.nextProbeAt ? stillAsked(shard, state, now) : probe(shard, {
        ...state,
        nextProbeAt: now + PROBE_LOST_MS,
        askedAt: now,
      }, "when_idle");
    case "degraded":
      return !leader || now < state.nextProbeAt
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

function stillAsked(shard: Shard, state: StateOf<"ready">, now: EpochMs): Step {
  const { askedAt } = state;
  if (askedAt === undefined || now < (tellAt(state) ?? Infinity)) return keep(shard);
  return become(shard, { ...state, suspicion: ofSilence({ ...state, askedAt }, now) }, now);
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
