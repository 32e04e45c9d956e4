/** The one error class for things that go wrong while operating, with a closed set of codes. */

/** Each code in one sentence; see `connectCode` for what it becomes on the wire. */
export type ErrorCode =
  /** A file, flag or message is not what it must be; trying again cannot help. */
  | "invalid_input"
  /** What was asked for does not exist. */
  | "not_found"
  /** The peer is not who it must be, or may not do this. */
  | "permission_denied"
  /** No valid certificate, key or token was shown. */
  | "unauthenticated"
  /** A bounded queue, range or budget is used up. */
  | "exhausted"
  /** The state of things does not allow this now; something must change first. */
  | "failed_precondition"
  /** The peer is away or this instance does not lead; trying again, elsewhere or later, can help. */
  | "unavailable"
  /** A deadline passed. */
  | "timeout"
  /** The peer or the system answered something that makes no sense. */
  | "protocol"
  /** The operating system refused: disk, port, process, permission. */
  | "system";

/**
 * An operating error. The message reads "action: state", without a period, and is fit for the eyes
 * of operators; `cause` is for the log.
 */
export class HeddleError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "HeddleError";
    this.code = code;
  }
}

/** The text of anything thrown, for the end of a sentence. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
