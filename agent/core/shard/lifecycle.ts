/**
 * The life of a shard as a pure state machine. The supervisor runs the effects and feeds what comes
 * of them back as events; here nothing waits, reads a clock or touches a process.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> preparing
 *   preparing --> starting
 *   preparing --> stopped
 *   preparing --> failed
 *   starting --> loading
 *   starting --> preparing
 *   starting --> stopping
 *   starting --> failed
 *   loading --> ready
 *   loading --> stopping
 *   ready --> degraded
 *   ready --> draining
 *   ready --> stopping
 *   degraded --> ready
 *   degraded --> draining
 *   degraded --> stopping
 *   draining --> stopping
 *   stopping --> stopped
 *   stopping --> failed
 *   stopped --> [*]
 *   failed --> [*]
 * ```
 *
 * A shard has failed or stopped only when nothing of it runs any more: until then it is `stopping`,
 * whatever the reason, because its GPUs are not free. If one of its processes ends, the others are
 * ended too. An engine that was ready is killed by the agent's own judgement in one case only: it has
 * been seen to give no token for longer than any engine takes to give up by itself.
 */
import type { Revision } from "@heddle/proto/revision";
import type { Effect, ShardEvent } from "./event.ts";
import { serving } from "./serving/serving.ts";
import { tellAt } from "./serving/suspicion.ts";
import type { EpochMs, ProcessRef, Shard, ShardSpec, StateKind, StateOf } from "./shard.ts";
import { fail, nothingRuns, stop, stopping } from "./stopping.ts";
import { PROBE_LOADING_FIRST_MS, STARTUP_TIMEOUT_MS, WORKER_GRACE_MS } from "./timing.ts";

export interface Step {
  readonly shard: Shard;
  readonly effects: readonly Effect[];
}

/** Where a state may lead; the diagram above says the same. */
export const TRANSITIONS: Readonly<Record<StateKind, readonly StateKind[]>> = {
  preparing: ["starting", "stopped", "failed"],
  starting: ["loading", "preparing", "stopping", "failed"],
  loading: ["ready", "stopping"],
  ready: ["degraded", "draining", "stopping"],
  degraded: ["ready", "draining", "stopping"],
  draining: ["stopping"],
  stopping: ["stopped", "failed"],
  stopped: [],
  failed: [],
};

/** A shard that control wants here. `apiKey` is for ranks that serve HTTP, else empty. */
export function begin(
  wanted: { readonly spec: ShardSpec; readonly revision: Revision; readonly apiKey: string },
  now: EpochMs,
): Step {
  const deadline = now + (wanted.spec.startupTimeoutMs || STARTUP_TIMEOUT_MS);
  return {
    shard: { ...wanted, since: now, state: { kind: "preparing", deadline } },
    effects: [{ type: "prepare" }],
  };
}

/** What the shard becomes and what is to be done. Never throws; an event out of place changes nothing. */
export function step(shard: Shard, event: ShardEvent, now: EpochMs): Step {
  const { state } = shard;
  switch (state.kind) {
    case "preparing":
      return preparing(shard, state, event, now);
    case "starting":
      return starting(shard, state, event, now);
    case "loading":
    case "ready":
    case "degraded":
    case "draining":
      return serving(shard, state, event, now);
    case "stopping":
      return stopping(shard, state, event, now);
    case "stopped":
    case "failed":
      return event.type === "stop"
        ? { shard: { ...shard, revision: event.revision }, effects: [] }
        : { shard, effects: [] };
    default:
      return state satisfies never;
  }
}

/** When the shard wants its next tick at the latest; undefined when only an event can move it. */
export function wakeAt(shard: Shard): EpochMs | undefined {
  const { state } = shard;
  switch (state.kind) {
    case "preparing":
    case "starting":
      return state.deadline;
    case "loading":
      return Math.min(state.deadline, state.nextProbeAt);
    case "ready":
      return shard.spec.rank === 0
        ? Math.min(state.nextProbeAt, state.recheckBy ?? Infinity, tellAt(state) ?? Infinity)
        : undefined;
    case "degraded":
      // Other ranks are degraded for their links alone, and those are looked at by somebody else.
      return shard.spec.rank === 0 ? state.nextProbeAt : undefined;
    case "draining":
      return Math.min(state.until, state.nextMeasureAt);
    case "stopping":
      return state.killed || state.freeBy !== undefined
        ? state.nextCountAt
        : Math.min(state.nextCountAt, state.killAt);
    case "stopped":
    case "failed":
      return undefined;
    default:
      return state satisfies never;
  }
}

function preparing(
  shard: Shard,
  state: StateOf<"preparing">,
  event: ShardEvent,
  now: EpochMs,
): Step {
  switch (event.type) {
    case "prepared":
      return {
        shard: {
          ...shard,
          since: now,
          state: { kind: "starting", planned: [...event.processes], deadline: state.deadline },
        },
        effects: [{ type: "launch", processes: event.processes }],
      };
    case "prepare_failed":
      return nothingRuns(shard, { kind: "failed", failure: event.failure }, now);
    case "fetching":
      return { shard: fetching(shard, state, event.progress, now), effects: [] };
    case "resumed":
      return { shard, effects: [{ type: "prepare" }] };
    case "stop":
      return nothingRuns(
        { ...shard, revision: event.revision },
        { kind: "stopped", reason: event.reason },
        now,
      );
    case "tick":
      if (now < state.deadline) return { shard, effects: [] };
      return nothingRuns(
        shard,
        { kind: "failed", failure: timeout(shard, "the checks before the start did not end") },
        now,
      );
    default:
      return { shard, effects: [] };
  }
}

// A download may take hours, and what fetches gives up by itself when nothing comes. The time to
// become ready begins when it ends. Moved by leaps: each is written down.
function fetching(
  shard: Shard,
  state: StateOf<"preparing">,
  progress: string,
  now: EpochMs,
): Shard {
  const limitMs = shard.spec.startupTimeoutMs || STARTUP_TIMEOUT_MS;
  const deadline = state.deadline - now < limitMs / 2 ? now + limitMs : state.deadline;
  return { ...shard, state: { ...state, deadline, progress } };
}

function starting(shard: Shard, state: StateOf<"starting">, event: ShardEvent, now: EpochMs): Step {
  switch (event.type) {
    case "launched":
      return loading(shard, event.processes, state.deadline, now);
    case "launch_failed":
      return fail({ ...shard, state: { ...state, planned: [] } }, event, now);
    case "resumed": {
      if (event.live.length === state.planned.length) {
        return loading(shard, event.live, state.deadline, now);
      }
      if (event.live.length === 0) {
        // Nothing was started before the agent ended: begin again, under the same deadline.
        return {
          shard: { ...shard, since: now, state: { kind: "preparing", deadline: state.deadline } },
          effects: [{ type: "prepare" }],
        };
      }
      const missing = state.planned.length - event.live.length;
      return fail({ ...shard, state: { ...state, planned: [] } }, {
        processes: event.live,
        failure: {
          reason: "launch_failed",
          message: `The agent ended while it started the shard: ${missing} of ` +
            `${state.planned.length} processes do not run`,
          permanent: false,
          logTail: [],
        },
      }, now);
    }
    case "stop":
      return stop(shard, event, now);
    case "exited":
      // Told by its watcher before the launch was: the launch's own result follows.
      return { shard, effects: [] };
    case "tick":
      if (now < state.deadline) return { shard, effects: [] };
      return fail(shard, {
        processes: [],
        failure: timeout(shard, "its processes could not be started"),
      }, now);
    default:
      return { shard, effects: [] };
  }
}

function loading(
  shard: Shard,
  processes: readonly ProcessRef[],
  deadline: EpochMs,
  now: EpochMs,
): Step {
  const wait = shard.spec.rank === 0 ? PROBE_LOADING_FIRST_MS : WORKER_GRACE_MS;
  return {
    shard: {
      ...shard,
      since: now,
      state: {
        kind: "loading",
        processes: [...processes],
        deadline,
        nextProbeAt: now + wait,
        progress: "",
      },
    },
    effects: [],
  };
}

function timeout(shard: Shard, what: string) {
  const limitMs = shard.spec.startupTimeoutMs || STARTUP_TIMEOUT_MS;
  return {
    reason: "startup_timeout",
    message: `Not ready within its startup_timeout of ${Math.round(limitMs / 1_000)} s: ${what}`,
    permanent: false,
    logTail: [],
  };
}
