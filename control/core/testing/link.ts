/** The stream between a simulated node and control. */
import type { EpochMs } from "../ids.ts";

/** One link between control and a node. */
export interface Link {
  /** Number of its newest stream; 0 while none is open. */
  stream: number;
  /** Nothing passes until then, and nobody notices. */
  silentUntil: EpochMs;
  /** When the agent dials again. */
  dialAt: EpochMs | undefined;
  nextBeatAt: EpochMs;
  /** Order within a stream is kept. */
  upAt: EpochMs;
  downAt: EpochMs;
}

/** No stream is open; the agent dials at `dialAt`. */
export function closedLink(dialAt: EpochMs): Link {
  return { stream: 0, silentUntil: 0, dialAt, nextBeatAt: 0, upAt: 0, downAt: 0 };
}
