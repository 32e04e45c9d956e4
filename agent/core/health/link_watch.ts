/** Which links have been unstable of late, from readings of their error counters. */

import type { NodeProblem } from "../problem.ts";
import { type CounterReading, counterRises, saturated } from "./port_counters.ts";

/** What is remembered of one port. */
export interface LinkRecord {
  readonly reading: CounterReading;
  /** What was added when it was last more than nothing, and when, in ms; undefined: never. */
  readonly rise: { readonly by: ReadonlyMap<string, number>; readonly at: number } | undefined;
  /** When it was last seen to have gone down, in ms; undefined: never. */
  readonly downAt: number | undefined;
}

/** How long a rise is told, in ms: a link that flaps now and then should stay in sight. */
const TOLD_MS = 600_000;

/** Counters whose rise is worth a word by itself; the others also rise on a good link. */
const TELLING: ReadonlySet<string> = new Set([
  ...["link_downed", "link_error_recovery", "local_link_integrity_errors"],
  "excessive_buffer_overrun_errors",
]);

/** The record after another reading at `now`. */
export function afterReading(
  earlier: LinkRecord | undefined,
  reading: CounterReading,
  now: number,
): LinkRecord {
  if (earlier === undefined) return { reading, rise: undefined, downAt: undefined };
  const by = counterRises(earlier.reading, reading);
  const telling = [...by.keys()].some((name) => TELLING.has(name));
  return {
    reading,
    rise: telling ? { by, at: now } : earlier.rise,
    downAt: by.has("link_downed") ? now : earlier.downAt,
  };
}

/** Whether a link went down lately: unambiguous, where the other counters are not. */
export function wentDown(record: LinkRecord | undefined, now: number): boolean {
  const { downAt } = record ?? {};
  return downAt !== undefined && now >= downAt && now - downAt < TOLD_MS;
}

/** A warning for every port, by its label, whose counters rose lately. No reading is no warning. */
export function linkProblems(
  records: ReadonlyMap<string, LinkRecord>,
  now: number,
): readonly NodeProblem[] {
  return [...records].flatMap(([label, { reading, rise }]): NodeProblem[] => {
    if (rise === undefined || now - rise.at >= TOLD_MS || now < rise.at) return [];
    const counters = [...rise.by].map(([name, by]) =>
      `${name} +${by}${saturated(name, reading.get(name) ?? 0) ? " (its maximum)" : ""}`
    );
    return [{
      reason: "hca_link_unstable",
      detail: `The link of ${label} had trouble lately, ${label}: ${counters.join(", ")}.`,
      remedy: "Check cable, transceiver and switch port; collectives stall while a link recovers.",
    }];
  });
}
