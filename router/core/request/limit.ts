/**
 * Limits of callers. Keys do not carry any yet, so the one policy there is lets every request
 * pass; its reservation keeps the shape that a counting policy needs: taken before the request is
 * admitted, settled with what was used, and given back however the request ends.
 */
import type { Caller } from "./caller.ts";
import { next, type Step } from "./outcome.ts";
import type { Usage } from "../usage.ts";

export interface Reservation extends Disposable {
  /** Replaces the estimate by what was really used. */
  settle(usage: Usage): void;
}

export interface Limits {
  reserve(caller: Caller, estimatedTokens: number): Step<Reservation>;
}

const NOTHING_RESERVED: Reservation = { settle() {}, [Symbol.dispose]() {} };

/** Every caller may send as much as the fleet takes. */
export const OPEN_LIMITS: Limits = { reserve: () => next(NOTHING_RESERVED) };
