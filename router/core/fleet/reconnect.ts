/** How long a router stays away from controls that do not help it. */

/** What came of one try to watch a control. */
export type Watched =
  /** It told its state, whatever ended the stream later. */
  | "heard"
  /** It answers, but with a state older than the router's: it may know more in a moment. */
  | "stale"
  /** It could not be reached, or refused. */
  | "failed";

/**
 * Tries in vain to count from now on; the wait before the next try grows with them. A control that
 * answers is alive: the long wait that its absence had earned is over.
 */
export function triesInVain(before: number, watched: Watched, staleInARow: number): number {
  switch (watched) {
    case "heard":
      return 0;
    case "stale":
      return staleInARow;
    case "failed":
      return before + 1;
  }
}
