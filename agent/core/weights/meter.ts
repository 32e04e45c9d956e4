/** How fast bytes come, and how long the rest will take: over the last seconds, not since the start. */

const WINDOW_MS = 15_000;
/** Less than that says nothing yet. */
const SPAN_MS_MIN = 1_500;

export interface Sample {
  readonly at: number;
  readonly bytes: number;
}

/** The samples that still count, with the newest. `at` in ms, of a clock that only goes forward. */
export function withSample(samples: readonly Sample[], newest: Sample): readonly Sample[] {
  const kept = samples.filter(({ at }) => newest.at - at <= WINDOW_MS);
  return [...kept, newest];
}

/** Bytes per second; undefined while that cannot be told. */
export function rateOf(samples: readonly Sample[]): number | undefined {
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined || last.at - first.at < SPAN_MS_MIN) {
    return undefined;
  }
  return Math.max(0, Math.round((last.bytes - first.bytes) / ((last.at - first.at) / 1_000)));
}

/** Seconds for `bytes` more; undefined when nothing comes. */
export function secondsFor(bytes: number, rate: number | undefined): number | undefined {
  if (rate === undefined || rate <= 0) return undefined;
  return Math.ceil(Math.max(0, bytes) / rate);
}
