/**
 * An hour of traffic, in memory. Routers say with each report what they answered since the last one,
 * and what they hold; every ten seconds that becomes one sample for each model and one for all. A
 * model's samples are a ring of fixed size, and only so many models have one, so the memory that this
 * takes is bounded. What nobody reported is not filled in: a gap in rates is a run of zeros, and what
 * nobody can know is null.
 */
import { inFlightOf } from "../../core/facts/work.ts";
import type { Router, World } from "../../core/world.ts";
import { TrafficRing } from "./traffic_ring.ts";
import {
  addCounted,
  addHeld,
  addReport,
  type Counts,
  type Held,
  noCounts,
  NOTHING_HELD,
  type ReportedLoad,
  sampleOf,
  waitingAt,
} from "./traffic_sample.ts";
import { ALL_MODELS, type TrafficHistory, type TrafficSample } from "./wire.ts";

export const SAMPLE_EVERY_MS = 10_000;

/** Models with a ring of their own: 256 of them take some 10 MB. The sum counts all. */
const MODELS_MAX = 256;

export class Traffic {
  readonly #counts = new Map<string, Counts>();
  readonly #rings = new Map<string, TrafficRing>();
  #sampledAt: number | undefined;

  /** Adds what a router reported. */
  reported(models: readonly ReportedLoad[]): void {
    for (const load of models) {
      const counts = this.#counts.get(load.model) ?? noCounts();
      addReport(counts, load);
      // A model that the catalog does not have, or no more, is dropped with the next sample.
      this.#counts.set(load.model, counts);
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
    const all = noCounts();
    let heldByAll: Held = NOTHING_HELD;
    const inFlight = inFlightByModel(world, now);
    const routers = leased(world, now);
    for (const name of names) {
      const counts = counted.get(name) ?? noCounts();
      const held = { inFlight: inFlight.get(name) ?? 0, ...waitingAt(routers, name) };
      addCounted(all, counts);
      heldByAll = addHeld(heldByAll, held);
      if (this.#rings.has(name) || this.#rings.size <= MODELS_MAX) {
        this.#ring(name).push(sampleOf({ now, seconds, counts, held }));
      }
    }
    this.#ring(ALL_MODELS).push(sampleOf({ now, seconds, counts: all, held: heldByAll }));
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
    return (this.#rings.get(model) ?? new TrafficRing()).columns();
  }

  #ring(name: string): TrafficRing {
    const found = this.#rings.get(name);
    if (found !== undefined) return found;
    const made = new TrafficRing();
    this.#rings.set(name, made);
    return made;
  }
}

function inFlightByModel(world: World, now: number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { id, model } of world.replicas.values()) {
    sums.set(model, (sums.get(model) ?? 0) + (inFlightOf(world, id, now) ?? 0));
  }
  return sums;
}

function leased(world: World, now: number): readonly Router[] {
  return [...world.routers.values()].filter(({ leaseUntil }) => leaseUntil > now);
}
