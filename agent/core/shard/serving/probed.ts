/** What the answers of a leader, or their absence, make of a shard. */
import { formatDurationMs } from "@heddle/common/duration";
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import type { EngineLoad, ShardEvent } from "../event.ts";
import type { EpochMs, Shard, StateOf } from "../shard.ts";
import { fail } from "../stopping.ts";
import {
  FAILED_PROBES_MAX,
  LOADING_FIRST_MS,
  PROBE_ADOPTED_MS,
  PROBE_BUSY_MS,
  PROBE_DEGRADED_MS,
  PROBE_LOADING_FIRST_MS,
  PROBE_LOADING_LATER_MS,
  PROBE_READY_MS,
  thresholdsOf,
} from "../timing.ts";
import { become, degrade, keep, readyState, type Serving, type Step } from "./becoming.ts";
import { degradedByLinks } from "./links.ts";
import { isBusy, nextStall } from "./stall.ts";
import { ofStall, silenceOf } from "./suspicion.ts";

type Probed = Extract<ShardEvent, { type: "probed" }>;
type Unready = Exclude<ProbeOutcome, { kind: "ready" }>;

/** What a probe that came back makes of the shard. */
export function probed(shard: Shard, state: Serving, event: Probed, now: EpochMs): Step {
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
  event: Probed,
  now: EpochMs,
): Step {
  const { outcome, load } = event;
  if (outcome.kind === "ready") {
    const { recheckBy: _, stall: before, askedAt: __, suspicion: ___, ...rest } = state;
    const stall = nextStall(before, load, now);
    if (stall !== undefined && now - stall.since >= thresholdsOf(shard.spec).hungMs) {
      return degrade(shard, { ...state, stall }, { ...HUNG, hungSince: stall.since }, now);
    }
    const suspicion = ofStall(stall, now);
    return become(shard, {
      ...rest,
      failedProbes: 0,
      nextProbeAt: now + (isBusy(load) ? PROBE_BUSY_MS : PROBE_READY_MS),
      ...(stall === undefined ? {} : { stall }),
      ...(suspicion === undefined ? {} : { suspicion }),
      ...lengthOf(outcome),
    }, now);
  }
  if (state.recheckBy !== undefined) {
    const { askedAt: _, ...rest } = state;
    return become(shard, { ...rest, nextProbeAt: now + PROBE_ADOPTED_MS }, now);
  }
  return unanswered(shard, state, { ...event, outcome }, now);
}

// One answer that did not come may be a full queue or a lost packet, unless the engine's own numbers
// say that it had nothing else to do.
function unanswered(
  shard: Shard,
  state: StateOf<"ready">,
  { outcome, load, after }: Probed & { readonly outcome: Unready },
  now: EpochMs,
): Step {
  const { askedAt = now, suspicion, ...rest } = state;
  const silence = isNoToken(outcome) ? silenceOf(load, after) : "unknown";
  const since = suspicion?.since ?? askedAt;
  if (silence === "hangs") {
    return degrade(shard, rest, { ...wordsOf(outcome), hungSince: since }, now);
  }
  const nextProbeAt = now + PROBE_DEGRADED_MS;
  if (silence === "stands_still" && load?.progress !== undefined) {
    const stall = { progress: load.progress, since };
    return become(shard, {
      ...rest,
      stall,
      nextProbeAt,
      suspicion: { what: "stalled", since, seenAt: now },
    }, now);
  }
  const failedProbes = state.failedProbes + 1;
  if (failedProbes < FAILED_PROBES_MAX) {
    const failed = { what: "failed", since, seenAt: now } as const;
    return become(shard, { ...rest, failedProbes, nextProbeAt, suspicion: failed }, now);
  }
  return degrade(shard, rest, { ...wordsOf(outcome), ...hungFrom(outcome, load, now) }, now);
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
    const noToken = isNoToken(outcome);
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
  if (outcome.kind !== "ready") {
    // Until now it was watched like one that is ready, and only its links were wrong.
    const hung = degradedByLinks(state) ? hungFrom(outcome, load, now) : {};
    return degrade(shard, state, { ...wordsOf(outcome), ...hung }, now);
  }
  if (state.linkFault !== undefined) return servesOverBadLinks(shard, state, event, now);
  const maxModelLen = outcome.maxModelLen ?? state.maxModelLen;
  return become(shard, readyState(state.processes, maxModelLen, now), now);
}

// It serves all the same, and can still come to hang.
function servesOverBadLinks(
  shard: Shard,
  state: StateOf<"degraded">,
  { load }: Probed,
  now: EpochMs,
): Step {
  const { stall: before, linkFault, ...rest } = state;
  const stall = nextStall(before, load, now);
  const watched = { ...rest, ...(stall === undefined ? {} : { stall }) };
  if (stall !== undefined && now - stall.since >= thresholdsOf(shard.spec).hungMs) {
    const words = { ...HUNG, hungSince: stall.since };
    return degrade(shard, watched, linkFault === undefined ? words : { ...words, linkFault }, now);
  }
  return become(shard, {
    ...watched,
    ...linkFault,
    ...(linkFault === undefined ? {} : { linkFault }),
    nextProbeAt: now + (isBusy(load) ? PROBE_BUSY_MS : PROBE_READY_MS),
  }, now);
}

// An idle engine that gives no token when asked hangs as one does whose requests stand still.
function hungFrom(
  outcome: ProbeOutcome,
  load: EngineLoad | undefined,
  now: EpochMs,
): { readonly hungSince?: EpochMs } {
  return isNoToken(outcome) && knowsLoad(load) ? { hungSince: now } : {};
}

function isNoToken(outcome: ProbeOutcome): boolean {
  return outcome.kind === "wrong" && outcome.reason === "no_token";
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

function wordsOf(outcome: Unready) {
  return outcome.kind === "wrong"
    ? { reason: outcome.reason, message: outcome.why }
    : { reason: "not_answering", message: outcome.why };
}

function lengthOf(outcome: { readonly maxModelLen?: number }): { maxModelLen?: number } {
  return outcome.maxModelLen === undefined ? {} : { maxModelLen: outcome.maxModelLen };
}
