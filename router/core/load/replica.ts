/**
 * One replica with its present: what only this router knows of it (requests in flight, breaker,
 * prefixes, speed), and what the engine and control said.
 */
import type { PromptBlocks } from "../affinity/blocks.ts";
import { PrefixIndex } from "../affinity/prefix_index.ts";
import { keyOf } from "../affinity/rendezvous.ts";
import { after, type Breaker, CLOSED, sent, settle, withdrawn } from "../fleet/breaker.ts";
import { type Endpoint, sameOrigin } from "../fleet/endpoint.ts";
import type { Judgement } from "../fleet/judgement.ts";
import type { Candidate } from "../schedule/candidate.ts";
import { type Capacity, CAPACITY_FIRST, heard, refused } from "./capacity.ts";
import type { EngineSample } from "./engine_sample.ts";
import type { FirstTokenLine } from "./first_token.ts";
import { ReplicaLoad } from "./replica_load.ts";

/** Longest time for which a full engine is asked last: its queue moves faster than it thinks. */
const BUSY_MAX_MS = 30_000;

/** What a candidate is made of besides the replica itself. */
export interface CandidateOptions {
  readonly promptTokens: number;
  readonly blocks: PromptBlocks | undefined;
  /** How fast replicas of the model usually are. */
  readonly usual: FirstTokenLine;
  /** Set by the operator; undefined: learnt. */
  readonly capacity: number | undefined;
  readonly staleMs: number;
}

export class Replica {
  readonly load = new ReplicaLoad();
  readonly prefixes = new PrefixIndex();
  readonly #key: number;
  #endpoint: Endpoint;
  #breaker: Breaker = CLOSED;
  #busyUntil = 0;
  #capacity: Capacity = CAPACITY_FIRST;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    this.#key = keyOf(endpoint.replicaId);
  }

  get endpoint(): Endpoint {
    return this.#endpoint;
  }

  /** The table has it anew. */
  moved(endpoint: Endpoint): void {
    // Another address is another engine: the old one's faults and its cache say nothing of it.
    if (!sameOrigin(this.#endpoint.origin, endpoint.origin)) {
      this.#breaker = CLOSED;
      this.prefixes.clear();
    }
    this.#endpoint = endpoint;
  }

  breaker(now: number): Breaker {
    return settle(this.#breaker, now);
  }

  /** A request goes there. True when it is the one that tries whether the replica is back. */
  send(now: number): boolean {
    const probing = this.breaker(now).kind === "half_open";
    this.#breaker = sent(this.#breaker, now);
    return probing;
  }

  /** A try there ended without saying anything of it. */
  withdraw(): void {
    this.#breaker = withdrawn(this.#breaker);
  }

  judge({ kind, retryAfterMs }: Judgement, now: number): void {
    if (kind === "busy") {
      // It answered, so it lives; only its queue is full.
      this.withdraw();
      this.#busyUntil = Math.max(this.#busyUntil, now + Math.min(retryAfterMs, BUSY_MAX_MS));
      this.#capacity = refused(this.#capacity, this.load.inFlight);
      return;
    }
    this.#breaker = after(this.#breaker, { kind, retryAfterMs }, now);
  }

  /** The engine was asked for its load, and said this. */
  observe(sample: EngineSample, now: number): void {
    const before = this.load.told(now)?.sample;
    // Counters that fall are those of an engine that started anew, with an empty cache.
    if ((sample.prefixQueries ?? 0) < (before?.prefixQueries ?? 0)) this.prefixes.clear();
    if (sample.kvTokens !== undefined) this.prefixes.fit(sample.kvTokens);
    this.load.observe(sample, now);
    const { running, waiting, kvUsage } = sample;
    const inFlight = this.load.all;
    this.#capacity = heard(this.#capacity, { running, waiting, kvUsage, inFlight });
  }

  /** Requests in flight at which it is full. */
  capacity(set: number | undefined): number {
    return set ?? this.#capacity.requests;
  }

  candidate(options: CandidateOptions, now: number): Candidate {
    const { promptTokens, blocks, usual, staleMs } = options;
    const present = this.load.present(now, staleMs, usual);
    return {
      endpoint: this.#endpoint,
      breaker: this.#breaker,
      busyUntil: this.#busyUntil,
      capacity: this.capacity(options.capacity),
      cachedTokens: this.cachedTokens(blocks, promptTokens) * this.prefixes.trust,
      key: this.#key,
      ...present,
    };
  }

  /** Tokens of the prompt that its cache has if it keeps what it was sent. */
  cachedTokens(blocks: PromptBlocks | undefined, promptTokens: number): number {
    if (blocks === undefined || blocks.hashes.length === 0) return 0;
    return promptTokens * this.prefixes.match(blocks.hashes) / blocks.hashes.length;
  }
}
