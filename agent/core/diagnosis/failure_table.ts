/**
 * The lines by which engines say why they failed, as data. Where a line fits several rows the first
 * one counts, so what is special stands before what is general.
 */
import type { FailureRow } from "./failure_row.ts";
import { MEMORY_FAILURES } from "./memory_failures.ts";
import { MODEL_FAILURES } from "./model_failures.ts";
import { NODE_FAILURES } from "./node_failures.ts";

export const FAILURE_ROWS: readonly FailureRow[] = [
  ...MEMORY_FAILURES,
  ...MODEL_FAILURES,
  ...NODE_FAILURES,
];

/** Lines that only say that something else went wrong, here or on another rank. */
const WRAPPERS: readonly RegExp[] = [
  /Engine core initialization failed\. See root cause above/,
  /EngineDeadError/,
  // What waited for a worker's answer, once the worker is found dead.
  /^RuntimeError: cancelled$/,
  /EngineCore (?:failed to start|encountered a fatal error|encountered an issue)/,
  /ActorHandleNotFoundError/,
  /exiting due to model loading error/,
  /\bNCCL\b.*heartbeat|heartbeat.*\bNCCL\b|HeartbeatMonitor/i,
  /sendBytes failed/,
  /resource_tracker: .*leaked/,
  /WorkerProc (?:initialization failed|failed to start)/,
  /Engine process failed to start/,
  /scheduler is dead/,
  /Received sigquit from a child process/i,
  /common_init_from_params: failed to load model/,
  /load_model: failed to load model/,
  /^Traceback \(most recent call last\)/,
  /During handling of the above exception|The above exception was the direct cause/,
];

/** Arguments and configurations are repeated by engines in one line, whatever words they hold. */
const DUMP = /\b(?:server_args=|non-default args:|ServerArgs\(|namespace\(|Namespace\()/;

const ANY_ROW = new RegExp(
  FAILURE_ROWS.flatMap(({ lines }) => lines.map(({ source }) => `(?:${source})`)).join("|"),
  "i",
);

/** True for a line that explains nothing itself. */
export function isWrapper(text: string): boolean {
  return WRAPPERS.some((pattern) => pattern.test(text));
}

/** The row that a line, without its prefixes, tells of. Never throws. */
export function rowOf(text: string): FailureRow | undefined {
  // One pass for the many lines that say nothing.
  if (!ANY_ROW.test(text) || DUMP.test(text) || isWrapper(text)) return undefined;
  return FAILURE_ROWS.find(({ lines }) => lines.some((pattern) => pattern.test(text)));
}
