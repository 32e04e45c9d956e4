/** How the agent speaks with heddle-fetch. */
import {
  decodeRequest,
  type FetchReport,
  type FetchRequest,
  lastReport,
} from "../core/weights/documents.ts";
import type { Language, ProgramRuns, Run } from "../programs/program_runs.ts";

export type FetchRun = Run<FetchRequest, FetchReport>;
export type FetchRuns = ProgramRuns<FetchRequest, FetchReport>;

export const FETCH: Language<FetchRequest, FetchReport> = {
  variable: "HEDDLE_FETCH_REQUEST",
  decode: decodeRequest,
  lastReport,
  isLast: ({ kind }) => kind !== "progress",
  failed: (message) => ({ kind: "failed", reason: "system_error", message }),
};
