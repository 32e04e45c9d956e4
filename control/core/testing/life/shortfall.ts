/**
 * How long models have fewer replicas than they want though there is room, once faults have stopped:
 * at most the longest backoff, startup_timeout and ten passes. The time counts from when the room is
 * there and control may use it, as seen from the nodes: what a drain, a silent node or weights that
 * nobody asks for hold is no room until they are gone.
 */
import type { EpochMs } from "../../ids.ts";
import { SIM_TIMINGS, type Simulation, STEP_MS } from "../simulation.ts";
import { roomFor } from "./room.ts";

/** The startup_timeout of every profile that is simulated. */
const STARTUP_MS = 120_000;
export const SHORT_MS_MAX = SIM_TIMINGS.backoff.maxMs + STARTUP_MS + 10 * STEP_MS;
/** Trying everything costs time, so that it is not done at every step. */
const LOOK_MS = 10 * STEP_MS;

export class Shortfall {
  readonly #sim: Simulation;
  /** Since when each model is short of what it could have. */
  readonly #since = new Map<string, EpochMs>();
  /** How many of its engines have failed for good. */
  readonly #failed = new Map<string, number>();

  constructor(sim: Simulation) {
    this.#sim = sim;
  }

  /** Lets time pass, and reports each model that is short for too long. */
  run(ms: number): void {
    for (const end = this.#sim.now + ms; this.#sim.now < end;) {
      this.#sim.run(Math.min(LOOK_MS, end - this.#sim.now));
      this.#look();
    }
  }

  #look(): void {
    const sim = this.#sim;
    const waits = sim.ledger.unheard(sim.now).length > 0;
    for (const { name, scaling } of sim.world.catalog.catalog.models) {
      const short = !waits && this.#ready(name) < scaling.min && !this.#fails(name) &&
        (this.#comes(name) || roomFor(sim, name, { atOnce: true }));
      if (!short) {
        this.#since.delete(name);
        continue;
      }
      const since = this.#since.get(name) ?? sim.now;
      this.#since.set(name, since);
      if (sim.now - since <= SHORT_MS_MAX) continue;
      const words = `${this.#ready(name)} of ${scaling.min} for ${sim.now - since} ms`;
      sim.violate("desired_in_time", `${name} has ${words}, though there is room`);
      this.#since.set(name, sim.now);
    }
  }

  /** A fault that lasts: a start that never ends by itself, or one that has just failed for good. */
  #fails(name: string): boolean {
    const nodes = [...this.#sim.nodes.values()];
    const failed = nodes.flatMap((node) => [...node.failedForGood.values()])
      .filter(({ spec }) => spec.model === name).length;
    const before = this.#failed.get(name) ?? failed;
    this.#failed.set(name, failed);
    return failed > before ||
      this.#shardsOf(name).some(({ state, until }) => state === "loading" && until === undefined);
  }

  /** Some replica of it is on its way up. */
  #comes(name: string): boolean {
    return this.#shardsOf(name).some(({ state }) =>
      ["preparing", "starting", "loading"].includes(state)
    );
  }

  /** Whole replicas whose every process is well. */
  #ready(name: string): number {
    const replicas = Map.groupBy(this.#shardsOf(name), ({ spec }) => spec.replicaId);
    return [...replicas.values()].filter((shards) =>
      shards.length === shards[0]?.spec.shardCount && shards.every(({ state }) => state === "ready")
    ).length;
  }

  #shardsOf(name: string) {
    return [...this.#sim.nodes.values()].flatMap((node) => node.running())
      .filter(({ spec }) => spec.model === name);
  }
}
