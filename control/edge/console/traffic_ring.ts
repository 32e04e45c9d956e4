/** The last samples of one model's traffic, in memory of fixed size. */
import type { TrafficHistory, TrafficSample } from "./wire.ts";

/** An hour of samples, one every ten seconds. */
const SAMPLES_MAX = 360;

const FIELDS = [
  "atS",
  "requests",
  "failures",
  "sloMisses",
  "inFlight",
  "waiting",
  "platinum",
  "gold",
  "silver",
  "bronze",
  "ttftP50Ms",
  "ttftP99Ms",
  "cacheShare",
] as const satisfies readonly (keyof TrafficSample)[];

export class TrafficRing {
  readonly #cells = new Float64Array(SAMPLES_MAX * FIELDS.length);
  #next = 0;
  #size = 0;

  push(sample: TrafficSample): void {
    for (const [index, field] of FIELDS.entries()) {
      // A cell that is no number is a value that nobody knows.
      this.#cells[this.#next * FIELDS.length + index] = sample[field] ?? NaN;
    }
    this.#next = (this.#next + 1) % SAMPLES_MAX;
    this.#size = Math.min(this.#size + 1, SAMPLES_MAX);
  }

  last(): TrafficSample | undefined {
    if (this.#size === 0) return undefined;
    const row = (this.#next + SAMPLES_MAX - 1) % SAMPLES_MAX;
    return {
      atS: this.#at(row, "atS"),
      requests: this.#at(row, "requests"),
      failures: this.#at(row, "failures"),
      sloMisses: this.#at(row, "sloMisses"),
      inFlight: this.#at(row, "inFlight"),
      waiting: this.#at(row, "waiting"),
      platinum: this.#known(row, "platinum"),
      gold: this.#known(row, "gold"),
      silver: this.#known(row, "silver"),
      bronze: this.#known(row, "bronze"),
      ttftP50Ms: this.#known(row, "ttftP50Ms"),
      ttftP99Ms: this.#known(row, "ttftP99Ms"),
      cacheShare: this.#known(row, "cacheShare"),
    };
  }

  columns(): TrafficHistory {
    const first = (this.#next + SAMPLES_MAX - this.#size) % SAMPLES_MAX;
    const rows = Array.from({ length: this.#size }, (_, row) => (first + row) % SAMPLES_MAX);
    const numbers = (field: Field) => rows.map((row) => this.#at(row, field));
    const known = (field: Field) => rows.map((row) => this.#known(row, field));
    return {
      atS: numbers("atS"),
      requests: numbers("requests"),
      failures: numbers("failures"),
      sloMisses: numbers("sloMisses"),
      inFlight: numbers("inFlight"),
      waiting: numbers("waiting"),
      platinum: known("platinum"),
      gold: known("gold"),
      silver: known("silver"),
      bronze: known("bronze"),
      ttftP50Ms: known("ttftP50Ms"),
      ttftP99Ms: known("ttftP99Ms"),
      cacheShare: known("cacheShare"),
    };
  }

  #at(row: number, field: Field): number {
    return this.#cells[row * FIELDS.length + FIELDS.indexOf(field)] ?? 0;
  }

  #known(row: number, field: Field): number | null {
    const value = this.#at(row, field);
    return Number.isNaN(value) ? null : value;
  }
}

type Field = (typeof FIELDS)[number];
