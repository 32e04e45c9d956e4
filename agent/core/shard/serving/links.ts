/**
 * What the links of a shard mean for it. An engine goes on over a link that was lost, or stands still
 * in its next collective, and says "healthy" either way: so the links are judged beside the engine's
 * own answers, and a shard with a bad one is degraded whatever the engine says.
 */
import type { EpochMs, Shard, StateOf } from "../shard.ts";
import {
  become,
  degrade,
  keep,
  readyState,
  type Serving,
  type Step,
  type Words,
} from "./becoming.ts";

/** After a look at the links: `fault` is what is wrong with them, undefined when nothing is. */
export function linksJudged(
  shard: Shard,
  state: Serving,
  fault: Words | undefined,
  now: EpochMs,
): Step {
  switch (state.kind) {
    case "ready":
      return fault === undefined
        ? keep(shard)
        : degrade(shard, state, { ...fault, linkFault: fault }, now);
    case "degraded":
      return fault === undefined ? healed(shard, state, now) : faulty(shard, state, fault, now);
    default:
      return keep(shard);
  }
}

function faulty(shard: Shard, state: StateOf<"degraded">, fault: Words, now: EpochMs): Step {
  if (same(state.linkFault, fault)) return keep(shard);
  // What its own answers say is wrong is graver, and goes on being told.
  const words = degradedByLinks(state) ? fault : {};
  return become(shard, { ...state, ...words, linkFault: { ...fault } }, now);
}

function healed(shard: Shard, state: StateOf<"degraded">, now: EpochMs): Step {
  const { linkFault, ...rest } = state;
  if (linkFault === undefined) return keep(shard);
  if (!degradedByLinks(state)) return become(shard, rest, now);
  // Whether a leader serves is its next probe's to say.
  return shard.spec.rank === 0
    ? become(shard, { ...rest, nextProbeAt: now }, now)
    : become(shard, readyState(state.processes, state.maxModelLen, now), now);
}

/** True when nothing but its links is known to be wrong with the shard. */
export function degradedByLinks({ reason, linkFault }: StateOf<"degraded">): boolean {
  return linkFault !== undefined && linkFault.reason === reason;
}

function same(a: Words | undefined, b: Words): boolean {
  return a?.reason === b.reason && a.message === b.message;
}
