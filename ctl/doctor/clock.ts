/**
 * Does this machine tell the same time as control's? Certificates hold by the clock, and ages, usage
 * and logs are read by it. Control says its own in the head of every answer, to the second.
 */
import { formatDurationMs } from "@heddle/common/duration";
import { type Check, ok, warning } from "./check.ts";

const NAME = "clock";

/** Less is what the network and a second's rounding may make of it, and does no harm. */
const OFF_MS_MAX = 10_000;

/** When control was asked, answered, and what it says the time was, in ms since 1970. */
export interface Told {
  readonly askedAt: number;
  readonly answeredAt: number;
  /** NaN where it said nothing that is a time. */
  readonly saidAt: number;
}

/** Undefined where control does not tell its time. */
export function checkClock({ askedAt, answeredAt, saidAt }: Told): Check | undefined {
  if (Number.isNaN(saidAt)) return undefined;
  const early = saidAt - answeredAt, late = askedAt - saidAt;
  if (early <= OFF_MS_MAX && late <= OFF_MS_MAX) return ok(NAME, "the same as control's");
  const [ms, way] = early > late ? [early, "behind"] : [late, "ahead of"];
  return warning(
    NAME,
    `this machine's is ${formatDurationMs(Math.round(ms / 1_000) * 1_000)} ${way} control's`,
    "have both kept by NTP: timedatectl; until then certificates may not hold, and ages are wrong",
  );
}
