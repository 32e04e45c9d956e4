/** One kind of failure that engines' logs tell of. */
export interface FailureRow {
  /** Closed snake_case word, as it stands in a shard's status. */
  readonly reason: string;
  /** Fragments of lines; any of them is enough. Matched against what is left without prefixes. */
  readonly lines: readonly RegExp[];
  /** What it means, in plain words; no full stop. */
  readonly meaning: string;
  /** What to do about it; no full stop. */
  readonly remedy: string;
  /**
   * "permanent": the same start again ends the same way. "when_memory_free": it may work once the
   * GPUs are measured free, which is waited for after every failure. "retry": it may work.
   */
  readonly retry: "permanent" | "retry" | "when_memory_free";
  /** A line that follows from something else, often on another rank: anything else explains more. */
  readonly symptom?: true;
  /** What the line may mean as well. */
  readonly alternatives?: readonly string[];
}
