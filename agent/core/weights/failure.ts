/** Why weights could not be fetched, looked at or removed. */

export const WEIGHTS_REASONS = [
  /** The source is not one that can be fetched. */
  "source_invalid",
  /** The repository, the revision or the file does not exist, or is not to be seen without a token. */
  "source_not_found",
  /** It wants a token, or another one. */
  "unauthorized",
  /** It wants more than a token: terms to be accepted. */
  "forbidden",
  /** It answered too often that it is asked too often. */
  "rate_limited",
  /** It could not be reached, or broke off too often. */
  "unreachable",
  /** It sent other bytes than it promised. */
  "corrupt",
  /** What is there changed while it was fetched. */
  "changed",
  /** Nothing of it is what an engine could be given. */
  "nothing_to_fetch",
  "disk_full",
  /** A shard uses it. */
  "in_use",
  /** Not fetched by Heddle, so not Heddle's to remove. */
  "not_ours",
  "cancelled",
  "system_error",
] as const;

export type WeightsReason = (typeof WEIGHTS_REASONS)[number];

/** Trying again without a change cannot help. */
const PERMANENT: ReadonlySet<WeightsReason> = new Set<WeightsReason>([
  "source_invalid",
  "source_not_found",
  "unauthorized",
  "forbidden",
  "nothing_to_fetch",
]);

export function isPermanent(reason: WeightsReason): boolean {
  return PERMANENT.has(reason);
}

/** Thrown inside the program that fetches; becomes its last word. */
export class WeightsError extends Error {
  readonly reason: WeightsReason;

  constructor(reason: WeightsReason, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "WeightsError";
    this.reason = reason;
  }
}
