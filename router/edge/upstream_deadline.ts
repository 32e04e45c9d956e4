/**
 * Deadlines that hold engines to account for what is theirs only. A process that got no time for a
 * while, because its machine was busy or its own loop was, finds its timers due before it has seen
 * what arrived meanwhile: a healthy fleet would look dead, all of it at once.
 */

/** After a deadline, so many further turns of the loop must bring nothing either. */
const LOOKS = 4;
const LOOK_MS = 100;

export interface Deadline {
  clear(): void;
}

/** Calls `passed` once, `ms` from now and 0.4 s, unless it is cleared until then. */
export function deadline(ms: number, passed: () => void): Deadline {
  let looks = 0;
  const look = (): void => {
    if (looks === LOOKS) return passed();
    looks++;
    timer = setTimeout(look, LOOK_MS);
  };
  let timer = setTimeout(look, ms);
  return { clear: () => clearTimeout(timer) };
}
