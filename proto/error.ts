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

const CAUSES_MAX = 4;
/** Longest text of a failed request, in characters. */
const NETWORK_WORDS_MAX = 300;

/**
 * Why a `fetch`, or the reading of its body, failed, for the end of a sentence that names the address.
 * The runtime's own message is no more than "fetch failed": why stands in the causes, below its
 * layers, and with the URL, whose query may be a signature.
 */
export function networkWords(error: unknown): string {
  const said: string[] = [];
  for (let at = error; at !== undefined && said.length < CAUSES_MAX;) {
    said.push(errorText(at));
    at = at instanceof Error ? at.cause : undefined;
  }
  return said.filter((each, index) => index === said.length - 1 || !/^fetch failed$/i.test(each))
    .join(": ")
    .replaceAll(
      /\berror sending request (?:from \S+ )?for (?:url \([^)]*\)|\S+(?: \([^)]*\))?): */g,
      "",
    )
    .replaceAll(/\bclient error \(\w+\): /g, "")
    .replaceAll(/ \(os error \d+\)/g, "")
    .replaceAll(/(https?:\/\/[^\s?)]+)\?[^\s)]*/g, "$1")
    .slice(0, NETWORK_WORDS_MAX);
}
