/**
 * An hour of traffic, in memory. Routers say with each report what they answered since the last one,
 * and what they hold; every ten seconds that becomes one sample for each model and one for all. A
 * model's samples are a ring of fixed size, and only so many models have one, so the memory that this
 * takes is bounded. What nobody reported is not filled in: a gap is a run of zeros.
 */
import type { ModelLoad } from "@heddle/proto/gen/router";
import { inFlightOf } from "../../core/facts/work.ts";
import type { World } from "../../core/world.ts";
import { ALL_MODELS, type TrafficHistory, type TrafficSample } from "./wire.ts";

export const SAMPLE_EVERY_MS = 10_000;

/** An hour of samples. */
const SAMPLES_MAX = 360;

/** Models with a ring of their own: 256 of them take some 4 MB. The sum counts all. */
const MODELS_MAX = 256;

const FIELDS = ["atS", "requests", "failures", "sloMisses", "inFlight", "waiting"] as const;

/** Answered since the last sample. */
interface Counts {
  requests: number;
  failures: number;
  sloMisses: number;
}

type ReportedLoad = Pick<ModelLoad, "model" | "requests" | "failures" | "sloMisses">;

export class Traffic {
  readonly #counts = new Map<string, Counts>();
  readonly #rings = new Map<string, Ring>();
  #sampledAt: number | undefined;

  /** Adds what a router reported. */
  reported(models: readonly ReportedLoad[]): void {
    for (const { model, requests, failures, sloMisses } of models) {
      const counts = this.#counts.get(model) ?? { requests: 0, failures: 0, sloMisses: 0 };
      counts.requests += requests;
      counts.failures += failures;
      counts.sloMisses += sloMisses ?? 0;
      // A model that the catalog does not have, or no more, is dropped with the next sample.
      this.#counts.set(model, counts);
    }
  }

  /** Takes one sample. `world` is undefined while this control stands by; then it forgets nothing. */
  sample(world: World | undefined, now: number): void {
    const seconds = (now - (this.#sampledAt ?? now - SAMPLE_EVERY_MS)) / 1_000;
    this.#sampledAt = now;
    const counted = new Map(this.#counts);
    this.#counts.clear();
    if (world === undefined || seconds <= 0) return;
    const names = world.catalog.catalog.models.map(({ name }) => name);
    for (const name of this.#rings.keys()) {
      if (name !== ALL_MODELS && !names.includes(name)) this.#rings.delete(name);
    }
    const all = emptySample(now);
    const inFlight = inFlightByModel(world, now);
    for (const name of names) {
      const sample = {
        ...rates(now, seconds, counted.get(name)),
        inFlight: inFlight.get(name) ?? 0,
        waiting: waitingFor(world, name, now),
      };
      for (const field of FIELDS) if (field !== "atS") all[field] += sample[field];
      if (this.#rings.has(name) || this.#rings.size <= MODELS_MAX) this.#ring(name).push(sample);
    }
    this.#ring(ALL_MODELS).push(all);
  }

  /** The newest sample of each model. */
  latest(): Map<string, TrafficSample> {
    return new Map(
      [...this.#rings].flatMap(([name, ring]) => {
        const last = ring.last();
        return last === undefined ? [] : [[name, last]];
      }),
    );
  }

  /** Of a model, or of all; empty for one without samples. */
  history(model: string): TrafficHistory {
    return (this.#rings.get(model) ?? new Ring()).columns();
  }

  #ring(name: string): Ring {
    const found = this.#rings.get(name);
    if (found !== undefined) return found;
    const made = new Ring();
    this.#rings.set(name, made);
    return made;
  }
}

class Ring {
  readonly #cells = new Float64Array(SAMPLES_MAX * FIELDS.length);
  #next = 0;
  #size = 0;

  push(sample: TrafficSample): void {
    for (const [index, field] of FIELDS.entries()) {
      this.#cells[this.#next * FIELDS.length + index] = sample[field];
    }
    this.#next = (this.#next + 1) % SAMPLES_MAX;
    this.#size = Math.min(this.#size + 1, SAMPLES_MAX);
  }

  last(): TrafficSample | undefined {
    if (this.#size === 0) return undefined;
    const row = (this.#next + SAMPLES_MAX - 1) % SAMPLES_MAX;
    return {
      atS: this.#at(row, 0),
      requests: this.#at(row, 1),
      failures: this.#at(row, 2),
      sloMisses: this.#at(row, 3),
      inFlight: this.#at(row, 4),
      waiting: this.#at(row, 5),
    };
  }

  columns(): TrafficHistory {
    const first = (this.#next + SAMPLES_MAX - this.#size) % SAMPLES_MAX;
    const column = (index: number) =>
      Array.from({ length: this.#size }, (_, row) => this.#at((first + row) % SAMPLES_MAX, index));
    return {
      atS: column(0),
      requests: column(1),
      failures: column(2),
      sloMisses: column(3),
      inFlight: column(4),
      waiting: column(5),
    };
  }

  #at(row: number, index: number): number {
    return this.#cells[row * FIELDS.length + index] ?? 0;
  }
}

function emptySample(now: number) {
  return {
    atS: Math.round(now / 1_000),
    requests: 0,
    failures: 0,
    sloMisses: 0,
    inFlight: 0,
    waiting: 0,
  };
}

function rates(now: number, seconds: number, counts: Counts | undefined) {
  const rate = (count: number) => Math.round((count / seconds) * 1_000) / 1_000;
  return {
    atS: Math.round(now / 1_000),
    requests: rate(counts?.requests ?? 0),
    failures: rate(counts?.failures ?? 0),
    sloMisses: rate(counts?.sloMisses ?? 0),
  };
}

function inFlightByModel(world: World, now: number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { id, model } of world.replicas.values()) {
    sums.set(model, (sums.get(model) ?? 0) + (inFlightOf(world, id, now) ?? 0));
  }
  return sums;
}

function waitingFor(world: World, model: string, now: number): number {
  let sum = 0;
  for (const router of world.routers.values()) {
    if (router.leaseUntil > now) sum += router.models.get(model)?.waiting ?? 0;
  }
  return sum;
}
