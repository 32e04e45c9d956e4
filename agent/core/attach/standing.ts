/**
 * What an agent says of the engine beside it. Ready is what the health URL says; without one the
 * engine counts as serving from the start. Not ready outweighs impaired.
 */
import type { ToldState } from "@heddle/proto/attached_state";

/** One bad answer of an engine that served is no outage: a busy one may be late. */
const FAILURES_MAX = 3;

export interface Health {
  readonly ready: boolean;
  /** In a row, since it was last good. */
  readonly failures: number;
  /** Why the last look was not good; empty when it was. */
  readonly why: string;
}

/** Nobody has looked; `asked`: there is a health URL. */
export function startingHealth(asked: boolean): Health {
  return { ready: !asked, failures: 0, why: asked ? "its health was not asked yet" : "" };
}

/** After a look. `why` is undefined when it was good. */
export function healthAfter({ ready, failures }: Health, why: string | undefined): Health {
  if (why === undefined) return { ready: true, failures: 0, why: "" };
  const count = failures + 1;
  return { ready: ready && count < FAILURES_MAX, failures: count, why };
}

/** Something that makes the engine slow while it serves. */
export interface Impairment {
  readonly reason: "nvlink_lost";
  readonly message: string;
}

export interface Told {
  readonly state: ToldState;
  readonly reason: string;
  readonly message: string;
}

/** What is told. An impairment is asked for only of an engine that is ready. */
export function toldOf({ ready, why }: Health, impairment: Impairment | undefined): Told {
  if (!ready) return { state: "assembling", reason: "not_ready", message: why };
  if (impairment !== undefined) return { state: "degraded", ...impairment };
  return { state: "serving", reason: "", message: "" };
}
