/**
 * The simulated engine: scheduler, cache and speed on a clock that the caller owns.
 *
 * Time is simulated, not measured. A step starts when the one before it ended (or when work arrived on an idle
 * engine) and ends after what the speed model says; `advance(now)` completes every step that is over by `now`, each
 * at its own time. So a caller whose timer fires late changes when it hears of a token, never when the token was
 * made, and lateness does not add up. Calls must pass a `now` that never goes back.
 */
import { EngineMetrics } from "./engine_metrics.ts";
import { KvCache } from "./kv_cache.ts";
import { Scheduler, type StepPlan } from "./scheduler.ts";
import { type FinishReason, Sequence, type SequenceRequest } from "./sequence.ts";
import { type SpeedOptions, type StepDuration, stepDuration } from "./speed.ts";
import { END_OF_TEXT, textOf } from "../text/tokenizer.ts";

export interface EngineOptions {
  readonly modelName: string;
  readonly contextTokensMax: number;
  readonly sequencesMax: number;
  readonly stepTokensMax: number;
  readonly blockTokens: number;
  readonly blockCount: number;
  readonly prefixCaching: boolean;
  readonly speed: SpeedOptions;
  /** What the front end takes before a request reaches the scheduler, in ms. */
  readonly overheadMs: number;
}

export interface Finish {
  readonly reason: FinishReason;
  /** The stop string or stop token that ended it; undefined for the end of the answer. */
  readonly stoppedBy: string | number | undefined;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generatedTokens: number;
}

/** One sequence's news from one step. */
export interface EngineOutput {
  readonly id: string;
  /** When the step ended, in ms on the engine's clock. */
  readonly at: number;
  /** Undefined for an embedding, which generates nothing. */
  readonly token: number | undefined;
  /** What the token adds to the visible answer; may be "" (the end, or a held-back stop string). */
  readonly text: string;
  readonly finish: Finish | undefined;
}

interface Step {
  readonly plan: StepPlan;
  endsAt: number;
}

export class Engine {
  readonly options: EngineOptions;
  readonly metrics: EngineMetrics;
  readonly #cache: KvCache;
  readonly #scheduler: Scheduler;
  readonly #durationMs: StepDuration;
  readonly #alive = new Map<string, Sequence>();
  readonly #arriving: { readonly sequence: Sequence; readyAt: number }[] = [];
  #step: Step | undefined;
  #clock = 0;
  #hungAt: number | undefined;

  /** @throws RangeError when the cache could not hold one sequence of full length. */
  constructor(options: EngineOptions) {
    if (options.blockCount * options.blockTokens < options.contextTokensMax) {
      throw new RangeError(
        `the cache holds ${options.blockCount * options.blockTokens} tokens, ` +
          `less than the context of ${options.contextTokensMax}`,
      );
    }
    this.options = options;
    this.metrics = new EngineMetrics(options);
    this.#cache = new KvCache(options);
    this.#scheduler = new Scheduler(options, this.#cache);
    this.#durationMs = stepDuration(options.speed);
  }

  get gauges(): { running: number; waiting: number; cacheUsage: number } {
    return {
      running: this.#scheduler.running.length,
      waiting: this.#scheduler.waiting.length,
      cacheUsage: this.#cache.usage,
    };
  }

  /** Sequences that were submitted and have not ended. */
  get aliveCount(): number {
    return this.#alive.size;
  }

  /** Takes a sequence on. Its end is told exactly once, by `advance`, unless `abort` ends it. */
  submit(request: SequenceRequest, now: number): void {
    if (this.#alive.has(request.id)) throw new Error(`sequence ${request.id} exists`);
    const sequence = new Sequence(request, now);
    this.#alive.set(request.id, sequence);
    this.#arriving.push({ sequence, readyAt: now + this.options.overheadMs });
  }

  /** Ends a sequence and frees its blocks at once. False when it had ended before. */
  abort(id: string, now: number, reason: "abort" | "error" = "abort"): boolean {
    const sequence = this.#alive.get(id);
    if (sequence === undefined) return false;
    const index = this.#arriving.findIndex((arrival) => arrival.sequence === sequence);
    if (index >= 0) this.#arriving.splice(index, 1);
    this.#end(sequence, reason, now);
    return true;
  }

  /** When the next step ends or could start; undefined when there is nothing to do, or it hangs. */
  nextEventAt(): number | undefined {
    if (this.#hungAt !== undefined) return undefined;
    return this.#step?.endsAt ?? this.#arriving[0]?.readyAt;
  }

  /** Completes what is over by `now`, `stepsMax` steps at most; call again while `nextEventAt() <= now`. */
  advance(now: number, stepsMax = Infinity): EngineOutput[] {
    const outputs: EngineOutput[] = [];
    if (this.#hungAt !== undefined) return outputs;
    for (let steps = 0; steps < stepsMax; steps += 1) {
      this.#startStep(now);
      if (this.#step === undefined || this.#step.endsAt > now) break;
      this.#completeStep(this.#step, outputs);
      this.#step = undefined;
    }
    this.#startStep(now);
    return outputs;
  }

  get hanging(): boolean {
    return this.#hungAt !== undefined;
  }

  /** Stands still: requests are taken, nothing moves, until `resume`. */
  hang(now: number): void {
    this.#hungAt ??= now;
  }

  /** Goes on where `hang` stopped, with everything that was pending as much later. */
  resume(now: number): void {
    if (this.#hungAt === undefined) return;
    const lateMs = now - this.#hungAt;
    if (this.#step !== undefined) this.#step.endsAt += lateMs;
    for (const arrival of this.#arriving) arrival.readyAt = Math.max(arrival.readyAt, now);
    this.#hungAt = undefined;
  }

  #startStep(now: number): void {
    if (this.#step !== undefined) return;
    let start = this.#clock;
    if (this.#scheduler.running.length + this.#scheduler.waiting.length === 0) {
      const readyAt = this.#arriving[0]?.readyAt;
      if (readyAt === undefined || readyAt > now) return;
      start = Math.max(start, readyAt);
    }
    this.#clock = start;
    while (this.#arriving[0] !== undefined && this.#arriving[0].readyAt <= start) {
      const arrival = this.#arriving.shift();
      if (arrival !== undefined) this.#scheduler.add(arrival.sequence);
    }
    const plan = this.#scheduler.schedule();
    if (plan === undefined) return;
    for (const { sequence } of plan.entries) sequence.times.scheduledAt ??= start;
    this.metrics.step(plan);
    this.#step = { plan, endsAt: start + this.#durationMs(plan) };
  }

  #completeStep(step: Step, outputs: EngineOutput[]): void {
    this.#clock = step.endsAt;
    for (const { sequence, tokens } of step.plan.entries) {
      // Aborted while the step ran.
      if (sequence.finished) continue;
      sequence.computed += tokens;
      if (sequence.computed < sequence.tokens.length) continue;
      outputs.push(this.#sample(sequence, step.endsAt));
    }
  }

  #sample(sequence: Sequence, now: number): EngineOutput {
    const { request } = sequence;
    if (sequence.times.firstTokenAt === undefined) this.metrics.prompt(sequence);
    if (request.answer === undefined) {
      sequence.times.firstTokenAt = now;
      const finish = this.#end(sequence, "stop", now);
      return { id: request.id, at: now, token: undefined, text: "", finish };
    }
    const endless = request.ignoreEnd || sequence.generated < request.tokensMin;
    const token = request.answer.next(endless);
    sequence.tokens.push(token);
    this.metrics.token(sequence, now);
    sequence.times.firstTokenAt ??= now;
    sequence.times.lastTokenAt = now;
    const delta = sequence.output.push(textOf(token));
    const stop = this.#stopOf(sequence, token, delta.stoppedBy);
    if (stop === undefined) {
      return { id: request.id, at: now, token, text: delta.text, finish: undefined };
    }
    const text = delta.text + sequence.output.flush();
    const finish = this.#end(sequence, stop.reason, now, stop.by);
    return { id: request.id, at: now, token, text, finish };
  }

  #stopOf(
    sequence: Sequence,
    token: number,
    stoppedBy: string | undefined,
  ): { reason: FinishReason; by?: string | number } | undefined {
    const { request } = sequence;
    if (stoppedBy !== undefined) return { reason: "stop", by: stoppedBy };
    if (token === END_OF_TEXT) return { reason: "stop" };
    if (request.stopTokenIds.includes(token) && sequence.generated >= request.tokensMin) {
      return { reason: "stop", by: token };
    }
    const full = sequence.tokens.length >= this.options.contextTokensMax;
    return full || sequence.generated >= request.tokensMax ? { reason: "length" } : undefined;
  }

  #end(
    sequence: Sequence,
    reason: FinishReason,
    now: number,
    stoppedBy?: string | number,
  ): Finish {
    sequence.finished = true;
    this.#alive.delete(sequence.request.id);
    this.#scheduler.remove(sequence);
    this.metrics.finished(sequence, reason, now);
    return {
      reason,
      stoppedBy,
      promptTokens: sequence.request.promptTokens.length,
      cachedTokens: sequence.cachedPromptTokens ?? 0,
      generatedTokens: sequence.generated,
    };
  }
}
