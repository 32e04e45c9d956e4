/**
 * Continuous batching as vLLM V1 does it, one step at a time.
 *
 * There is no prefill phase and no decode phase: each sequence has tokens that are not computed yet (a whole prompt,
 * the rest of one, or the one token just sampled) and a step hands out a budget of tokens, first to those that run,
 * then to those that wait, first come first served. A prompt longer than the budget is computed in chunks. When a
 * running sequence needs a block and none is free, the one that was admitted last gives all of its blocks up and
 * goes back to the head of the queue, to be computed again.
 */
import type { KvCache } from "./kv_cache.ts";
import type { Sequence } from "./sequence.ts";

export interface SchedulerOptions {
  readonly sequencesMax: number;
  /** Tokens computed in one step, all sequences together. */
  readonly stepTokensMax: number;
}

/** A sequence's part in a step. */
export interface StepEntry {
  readonly sequence: Sequence;
  readonly tokens: number;
}

export interface StepPlan {
  readonly entries: readonly StepEntry[];
  readonly preempted: readonly Sequence[];
  /** Tokens that are not one sequence's next token. */
  readonly prefillTokens: number;
  readonly decodeCount: number;
  /** Prompt tokens looked up in the cache in this step, and found there. */
  readonly cacheQueries: number;
  readonly cacheHits: number;
}

interface Draft {
  readonly entries: StepEntry[];
  readonly preempted: Sequence[];
  budget: number;
  cacheQueries: number;
  cacheHits: number;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #cache: KvCache;
  readonly #running: Sequence[] = [];
  readonly #waiting: Sequence[] = [];

  constructor(options: SchedulerOptions, cache: KvCache) {
    this.#options = options;
    this.#cache = cache;
  }

  get running(): readonly Sequence[] {
    return this.#running;
  }

  get waiting(): readonly Sequence[] {
    return this.#waiting;
  }

  add(sequence: Sequence): void {
    this.#waiting.push(sequence);
  }

  /** Takes a sequence out, wherever it is, and frees its blocks at once. */
  remove(sequence: Sequence): void {
    for (const list of [this.#running, this.#waiting]) {
      const index = list.indexOf(sequence);
      if (index >= 0) list.splice(index, 1);
    }
    this.#cache.release(sequence.table);
  }

  /** Decides the next step and takes the blocks it needs; undefined when there is nothing to do. */
  schedule(): StepPlan | undefined {
    const draft: Draft = {
      entries: [],
      preempted: [],
      budget: this.#options.stepTokensMax,
      cacheQueries: 0,
      cacheHits: 0,
    };
    this.#continueRunning(draft);
    // A step that had to preempt admits nobody: the blocks would be taken away again at once.
    if (draft.preempted.length === 0) this.#admitWaiting(draft);
    return draft.entries.length === 0 && draft.preempted.length === 0 ? undefined : finish(draft);
  }

  #continueRunning(draft: Draft): void {
    for (let index = 0; index < this.#running.length && draft.budget > 0; index += 1) {
      const sequence = this.#running[index];
      if (sequence === undefined) break;
      const tokens = Math.min(sequence.tokens.length - sequence.computed, draft.budget);
      if (this.#makeRoom(sequence, sequence.computed + tokens, draft)) {
        this.#grant(sequence, tokens, draft);
      }
    }
  }

  /**
   * Preempts from the back until `sequence` has its blocks; false when it had to go itself. Those at the back have
   * not been given their part of this step yet, so nothing needs to be taken out of the draft.
   */
  #makeRoom(sequence: Sequence, tokenCount: number, draft: Draft): boolean {
    while (!this.#cache.reserve(sequence.table, tokenCount)) {
      const victim = this.#running.pop();
      if (victim === undefined) return false;
      this.#preempt(victim, draft);
      if (victim === sequence) return false;
    }
    return true;
  }

  #preempt(victim: Sequence, draft: Draft): void {
    this.#cache.release(victim.table);
    victim.computed = 0;
    victim.preemptions += 1;
    draft.preempted.push(victim);
    this.#waiting.unshift(victim);
  }

  #admitWaiting(draft: Draft): void {
    while (draft.budget > 0 && this.#running.length < this.#options.sequencesMax) {
      const sequence = this.#waiting[0];
      if (sequence === undefined) return;
      const matched = this.#cache.match(sequence.table, sequence.tokens);
      const cached = matched.length * this.#cache.options.blockTokens;
      const tokens = Math.min(sequence.tokens.length - cached, draft.budget);
      if (!this.#cache.reserve(sequence.table, cached + tokens, matched)) return;
      this.#waiting.shift();
      this.#running.push(sequence);
      sequence.computed = cached;
      if (sequence.cachedPromptTokens === undefined) {
        sequence.cachedPromptTokens = cached;
        draft.cacheQueries += sequence.tokens.length;
        draft.cacheHits += cached;
      }
      this.#grant(sequence, tokens, draft);
    }
  }

  #grant(sequence: Sequence, tokens: number, draft: Draft): void {
    draft.entries.push({ sequence, tokens });
    draft.budget -= tokens;
    this.#cache.publish(sequence.table, sequence.tokens, sequence.computed + tokens);
  }
}

function finish(draft: Draft): StepPlan {
  let prefillTokens = 0;
  let decodeCount = 0;
  for (const { sequence, tokens } of draft.entries) {
    const decoding = sequence.generated > 0 && sequence.computed + 1 === sequence.tokens.length;
    if (decoding) decodeCount += 1;
    else prefillTokens += tokens;
  }
  return {
    entries: draft.entries,
    preempted: draft.preempted,
    prefillTokens,
    decodeCount,
    cacheQueries: draft.cacheQueries,
    cacheHits: draft.cacheHits,
  };
}
