/**
 * What is kept of one process's log while it grows: the first errors, because the root cause scrolls
 * away; the last lines; and the first line of each kind of failure. Bounded, whatever is printed.
 */
import type { FailureRow } from "./failure_row.ts";
import { isWrapper, rowOf } from "./failure_table.ts";
import { readLogLine } from "./log_line.ts";

/** As many errors as tell the story; a traceback's frames are not counted. */
export const FIRST_ERRORS_MAX = 50;
export const LAST_LINES_MAX = 400;

/** A line that a row of the table fits. */
export interface Finding {
  readonly row: FailureRow;
  /** As it was printed. */
  readonly line: string;
  /** Counted from 1 within the process's log. */
  readonly number: number;
  /** Of this line or the last one that said its time; undefined: none did. */
  readonly time: number | undefined;
  /** Printed as a warning only. */
  readonly warning: boolean;
}

const FRAME = /^\s|^File "|^[~^]+$/;
const EXCEPTION = /^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Failure)\b(?::|$)/;
const SAYS_ERROR = /\b(?:error|fatal|failed|exception|abort(?:ed)?|panic|segmentation fault)\b/i;

export class LogDigest {
  readonly #firstErrors: string[] = [];
  readonly #last: string[] = [];
  readonly #findings = new Map<FailureRow, { error?: Finding; warning?: Finding }>();
  #exception: Finding["line"] | undefined;
  #plainError: string | undefined;
  #time: number | undefined;
  #count = 0;

  /** Takes the next line. Never throws. */
  push(line: string): void {
    this.#count++;
    this.#last.push(line);
    // Cut rarely: shifting an array for each line of a flood is slow.
    if (this.#last.length > 2 * LAST_LINES_MAX) this.#last.splice(0, LAST_LINES_MAX);
    const { text, level, time } = readLogLine(line);
    this.#time = time ?? this.#time;
    if (level === "info" || text === "") return;
    this.#find(line, text, level === "warning");
    if (level === "warning") return;
    const exception = EXCEPTION.test(text);
    const counts = !FRAME.test(text) &&
      (level === "error" || exception || /^Traceback \(/.test(text) || SAYS_ERROR.test(text));
    if (!counts) return;
    if (this.#firstErrors.length < FIRST_ERRORS_MAX) this.#firstErrors.push(line);
    if (isWrapper(text)) return;
    if (exception) this.#exception ??= line;
    this.#plainError ??= line;
  }

  get lineCount(): number {
    return this.#count;
  }

  /** The first lines that tell of an error, oldest first. */
  get firstErrors(): readonly string[] {
    return this.#firstErrors;
  }

  /** The last lines, oldest first. */
  get lastLines(): readonly string[] {
    return this.#last.slice(-LAST_LINES_MAX);
  }

  /** The first line of each kind of failure, in the order of the log. */
  get findings(): readonly Finding[] {
    return [...this.#findings.values()]
      .flatMap(({ error, warning }) => [error ?? [], warning ?? []].flat())
      .sort((a, b) => a.number - b.number);
  }

  /** The line that says most about a failure of no known kind: an exception, else any error. */
  get unexplained(): string | undefined {
    return this.#exception ?? this.#plainError;
  }

  #find(line: string, text: string, warning: boolean): void {
    const row = rowOf(text);
    if (row === undefined) return;
    const known = this.#findings.get(row) ?? {};
    this.#findings.set(row, known);
    const finding = { row, line, number: this.#count, time: this.#time, warning };
    if (warning) known.warning ??= finding;
    else known.error ??= finding;
  }
}
