/**
 * One engine under load, by the simulated engine's own figure of how long a step takes. Requests that
 * decode all get a token with each step, so one running total says how far each has come; prompts are
 * read first come, first served, beside it, as chunked prefill does.
 */
import { stepDuration } from "../../sim/core/engine/speed.ts";
import type { Arrival } from "./trace.ts";

/** A card that runs an 8B model; `sim/core/engine/speed.ts` says what the figures mean. */
const SPEED = { prefillTokensPerS: 20_000, decodeTokensPerS: 80, decodeTokensPerSTotal: 3_200 };

/** Sequences that it runs at once. */
export const SEQUENCES_MAX = 128;

const step = stepDuration(SPEED);

/** Times in ms. */
export interface Going extends Arrival {
  readonly arrivedAt: number;
}

export interface Done {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

interface Reading {
  readonly request: Going;
  left: number;
}

interface Decoding {
  readonly request: Going;
  readonly firstAt: number;
  /** The total at which it has all its tokens. */
  readonly endsAt: number;
}

export class ReplicaLoad {
  readonly #reading: Reading[] = [];
  /** By where each ends: the next to end is last. */
  readonly #decoding: Decoding[] = [];
  #tokens = 0;

  get inFlight(): number {
    return this.#reading.length + this.#decoding.length;
  }

  take(request: Going): void {
    this.#reading.push({ request, left: request.promptTokens });
  }

  /** Lets `ms` pass up to `now`, and gives what ended in them. */
  advance(ms: number, now: number): readonly Done[] {
    const left = this.#read(ms, now);
    const stepMs = step({ prefillTokens: 0, decodeCount: this.#decoding.length });
    if (stepMs > 0) this.#tokens += left / stepMs;
    const done: Done[] = [];
    for (let last = this.#decoding.at(-1); last !== undefined; last = this.#decoding.at(-1)) {
      if (last.endsAt > this.#tokens) break;
      this.#decoding.pop();
      const { request, firstAt } = last;
      done.push({
        ttftMs: firstAt - request.arrivedAt,
        tpotMs: (now - firstAt) / Math.max(1, request.outputTokens - 1),
      });
    }
    return done;
  }

  /** Reads prompts in turn; gives the time that is left for decoding. */
  #read(ms: number, now: number): number {
    // A step reads and decodes: prompts never take all of it while something decodes.
    const most = this.#decoding.length === 0 ? ms : 0.8 * ms;
    let used = 0;
    for (let first = this.#reading[0]; first !== undefined; first = this.#reading[0]) {
      const tokens = (most - used) * SPEED.prefillTokensPerS / 1_000;
      if (first.left > tokens) {
        first.left -= Math.max(0, tokens);
        return ms - most;
      }
      used += first.left * 1_000 / SPEED.prefillTokensPerS;
      this.#reading.shift();
      this.#begin(first.request, now - ms + used);
    }
    return ms - used;
  }

  #begin(request: Going, firstAt: number): void {
    const endsAt = this.#tokens + request.outputTokens - 1;
    let place = this.#decoding.length;
    while (place > 0 && (this.#decoding[place - 1]?.endsAt ?? 0) < endsAt) place--;
    this.#decoding.splice(place, 0, { request, firstAt, endsAt });
  }
}
