/**
 * Days, months and hours as the operator's clock on the wall shows them. Budgets and bills begin at
 * midnight of one time zone, also on days of 23 and 25 hours, and where hours begin at half past.
 */
import type { Period } from "../tenancy/stored.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Longer than any month: the next one begins within it. */
const MONTH_MS_MAX = 32 * 24 * HOUR_MS;
const DAY_MS_MAX = 26 * HOUR_MS;
/** Two years of them. */
const DAYS_KEPT = 731;

interface Wall {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly minute: number;
}

/** A time zone by its IANA name, e.g. "Europe/Berlin". Throws RangeError for one that is none. */
export class Calendar {
  readonly #format: Intl.DateTimeFormat;
  /** Of the minute that was asked for last: records come nearly in order. */
  #cached: { readonly minute: number; readonly periods: Periods } | undefined;
  /** Beginnings of days, which take a while to find. */
  readonly #days = new Map<string, number>();

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
  }

  /** What the wall shows at `at`. */
  #wall(at: number): Wall {
    const parts = new Map(this.#format.formatToParts(at).map(({ type, value }) => [type, value]));
    const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type));
    return {
      year: part("year"),
      month: part("month"),
      day: part("day"),
      minute: part("minute"),
    };
  }

  /** The periods that `at` is in. */
  periods(at: number): Periods {
    const minute = floorTo(at, MINUTE_MS);
    if (this.#cached?.minute === minute) return this.#cached.periods;
    const wall = this.#wall(minute);
    const month = `m${wall.year}-${pad(wall.month)}`;
    const day = `d${wall.year}-${pad(wall.month)}-${pad(wall.day)}`;
    const periods = { hour: minute - wall.minute * MINUTE_MS, day, month };
    this.#cached = { minute, periods };
    return periods;
  }

  /** When the day that `at` is in began. */
  dayOf(at: number): number {
    const { day } = this.periods(at);
    const found = this.#days.get(day);
    if (found !== undefined) return found;
    let [outside, inside] = [at - DAY_MS_MAX, at];
    while (inside - outside > 1) {
      const middle = Math.floor((inside + outside) / 2);
      if (this.periods(middle).day === day) inside = middle;
      else outside = middle;
    }
    if (this.#days.size >= DAYS_KEPT) this.#days.clear();
    this.#days.set(day, inside);
    return inside;
  }

  /** When the period that `at` is in ends, which is when the next begins. */
  endOf(period: Period, at: number): number {
    const mine = this.periods(at)[period];
    let [inside, outside] = [at, at + (period === "day" ? DAY_MS_MAX : MONTH_MS_MAX)];
    // What begins at a minute: halving finds it, whatever the clocks do in between.
    while (outside - inside > 1) {
      const middle = Math.floor((inside + outside) / 2);
      if (this.periods(middle)[period] === mine) inside = middle;
      else outside = middle;
    }
    return outside;
  }
}

export interface Periods {
  /** Beginning of the hour on the wall, in ms since 1970. */
  readonly hour: number;
  /** "d2026-11-29" */
  readonly day: string;
  /** "m2026-11" */
  readonly month: string;
}

function floorTo(value: number, step: number): number {
  return Math.floor(value / step) * step;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
