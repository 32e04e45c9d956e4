/** How long control waits for things. Milliseconds of control's own clock; no other clock counts. */
import type { BackoffBounds } from "@heddle/common/backoff";

export interface Timings {
  /** How often agents are asked to send a heartbeat. */
  readonly heartbeatMs: number;
  /** Silence after which a node is unreachable: it goes on serving, nothing new is placed there. */
  readonly unreachableMs: number;
  /** Silence after which a node is lost: what ran there is rebuilt elsewhere. */
  readonly lostMs: number;
  /** Longest wait for known nodes after a start, before placing and publishing removals. */
  readonly settleMs: number;
  /** How long demand must have called for more before replicas are added. */
  readonly scaleUpWindowMs: number;
  /** How long demand must have been low before replicas are taken away; also how long after settling
   * surplus ones are left alone. */
  readonly scaleDownWindowMs: number;
  /** How long a drain waits for a replacement, and then how long for requests in flight. */
  readonly drainGraceMs: number;
  /** How long an agent may take to answer a command before it is sent again. */
  readonly commandMs: number;
  /** Time an engine gets between the request to end and the kill; agents are told it. */
  readonly stopTimeoutMs: number;
  /** How long a router's report holds. */
  readonly routerLeaseMs: number;
  /** How long a claim of an attached engine holds; 0: nothing can attach to this control. */
  readonly attachLeaseMs: number;
  /** How long a model with `min: 0` stays up after the last demand for it. */
  readonly idleMs: number;
  readonly backoff: BackoffBounds;
}

/** The defaults that DESIGN's table gives. */
export const DEFAULT_TIMINGS: Timings = {
  heartbeatMs: 5_000,
  unreachableMs: 15_000,
  lostMs: 60_000,
  settleMs: 60_000,
  // Long enough for a burst to pass, short beside what a start takes.
  scaleUpWindowMs: 30_000,
  scaleDownWindowMs: 60_000,
  drainGraceMs: 300_000,
  // Two heartbeats: an agent answers a command at once, so a longer silence means it was lost.
  commandMs: 10_000,
  stopTimeoutMs: 60_000,
  // Five reports at one every 2 s.
  routerLeaseMs: 10_000,
  attachLeaseMs: 0,
  idleMs: 600_000,
  backoff: { firstMs: 10_000, maxMs: 600_000 },
};
