/**
 * Why an engine failed. The last and the loudest lines are seldom the reason: one rank fails, and
 * the others fill their logs with its absence. So the earliest line that explains something counts,
 * over all processes; and what a log cannot know (how the process ended, who holds the GPU, which
 * disk is full) is set beside it.
 */
import {
  type Evidence,
  faultWords,
  fullPlace,
  type GpuFault,
  gpuWords,
  isGrave,
  memlockSuffices,
  memlockWords,
  spaceWords,
} from "./evidence.ts";
import type { FailureRow } from "./failure_row.ts";
import { FAILURE_ROWS } from "./failure_table.ts";
import type { Finding, LogDigest } from "./log_digest.ts";

export interface ProcessLog {
  readonly process: string;
  readonly digest: LogDigest;
}

export interface Diagnosis {
  /** Closed snake_case word; "unexplained" when no row of the table fits. */
  readonly reason: string;
  readonly meaning: string;
  readonly remedy: string;
  /** The same start again ends the same way. */
  readonly permanent: boolean;
  /** What it may be as well. */
  readonly alternatives: readonly string[];
  /** What is known besides. */
  readonly facts: readonly string[];
  /** The line that says so, as it was printed; absent when only the end of the process does. */
  readonly said?: { readonly process: string; readonly line: string; readonly number?: number };
}

/** A symptom that another rank's cause brought about is seen by so much before it at most. */
const SYMPTOM_LEAD_MS = 2_000;

/** Share of a card's memory that may be in use before an engine starts, for the driver's own needs. */
const OWN_USE_SHARE = 0.1;

const MEMLOCK_LIMITED = "memlock_limited";

interface Found extends Finding {
  readonly process: string;
}

/** Undefined when neither the logs nor the facts say anything. Pure; never throws. */
export function diagnose(logs: readonly ProcessLog[], evidence: Evidence): Diagnosis | undefined {
  const all = logs.flatMap(({ process, digest }) =>
    digest.findings.map((finding): Found => ({ ...finding, process }))
  );
  const errors = all.filter(({ warning }) => !warning);
  const found = earliest(errors.length > 0 ? errors : all);
  const { exit } = evidence;
  const explained = found !== undefined && !found.warning && found.row.symptom !== true &&
    found.row.reason !== "host_memory_or_killed";
  if (exit?.outOfMemory === true && !explained) return outOfHostMemory(found);
  const grave = evidence.gpuFaults?.find(isGrave);
  // A GPU that failed brings every other line about; what is wrong with a model or a flag it does not.
  if (grave !== undefined && (found === undefined || found.row.retry !== "permanent")) {
    return fromFault(grave, found, evidence);
  }
  if (found !== undefined) return fromRow(found, evidence);
  const byLog = unexplained(logs, evidence);
  const byExit = fromExit(evidence) ?? fromLightFault(evidence, byLog);
  if (byExit === undefined) return byLog;
  const facts = [...new Set([...byExit.facts, ...faultWords(evidence)])];
  return { ...byExit, facts, ...(byLog?.said === undefined ? {} : { said: byLog.said }) };
}

/** One paragraph for a status. */
export function diagnosisText(diagnosis: Diagnosis): string {
  const { meaning, remedy, alternatives, facts, said } = diagnosis;
  return [
    `${capital(meaning)}. To do: ${remedy}.`,
    ...alternatives.map((words) => `Or ${words}.`),
    ...(facts.length === 0 ? [] : [`${facts.join("; ")}.`]),
    ...(said === undefined ? [] : [`The ${said.process}'s log says: ${said.line.trim()}`]),
  ].join(" ");
}

function earliest(found: readonly Found[]): Found | undefined {
  const first = [...found].sort(byTime)[0];
  if (first === undefined || first.row.symptom !== true) return first;
  const causes = found.filter(({ row }) => row.symptom !== true).sort(byTime);
  return causes.find((cause) =>
    cause.time === undefined || first.time === undefined ||
    cause.time - first.time <= SYMPTOM_LEAD_MS
  ) ?? first;
}

// Logs that say no time come after those that do, and causes before symptoms. The sort is stable:
// what is alike stays in the order of the processes and their lines.
function byTime(a: Found, b: Found): number {
  if (a.time !== undefined && b.time !== undefined && a.time !== b.time) return a.time - b.time;
  if ((a.time === undefined) !== (b.time === undefined)) return a.time === undefined ? 1 : -1;
  if (a.process === b.process) return a.number - b.number;
  return Number(a.row.symptom === true) - Number(b.row.symptom === true);
}

function fromRow(found: Found, evidence: Evidence): Diagnosis {
  const row = rightLimit(rightPlace(found.row, evidence), evidence);
  const { meaning, remedy, alternatives = [] } = row;
  const diagnosis: Diagnosis = {
    reason: row.reason,
    meaning,
    remedy,
    permanent: row.retry === "permanent",
    alternatives,
    facts: factsFor(row, evidence),
    said: { process: found.process, line: found.line, number: found.number },
  };
  return row.reason === "gpu_memory_taken" ? withShare(diagnosis, found.line) : diagnosis;
}

// Both are told by the same words; the free space tells them apart.
function rightPlace(row: FailureRow, evidence: Evidence): FailureRow {
  const full = fullPlace(evidence);
  const other = row.reason === "disk_full" && full === "shm"
    ? "shm_too_small"
    : row.reason === "shm_too_small" && full === "disk"
    ? "disk_full"
    : undefined;
  const right = FAILURE_ROWS.find(({ reason }) => reason === other);
  if (right !== undefined) return { ...right, alternatives: [] };
  return full === undefined ? row : { ...row, alternatives: [] };
}

// What may be locked decides whether that is what a symptom means, and whether a refusal was the limit's.
function rightLimit(row: FailureRow, evidence: Evidence): FailureRow {
  const suffices = memlockSuffices(evidence);
  if (suffices === undefined) return row;
  const limited = FAILURE_ROWS.find(({ reason }) => reason === MEMLOCK_LIMITED);
  if (limited === undefined) return row;
  if (row.reason === "nccl_system_error") {
    const { alternatives = [] } = row;
    return suffices || evidence.usesAdapters !== true
      ? { ...row, alternatives: alternatives.filter((words) => !words.startsWith("memlock")) }
      : { ...limited, alternatives: [row.meaning] };
  }
  if (row.reason !== MEMLOCK_LIMITED) return row;
  return suffices
    ? {
      ...row,
      meaning: "memory could not be pinned, though engines may lock as much as they want",
      remedy: "see free -g: the host's memory is used up; give it more, or load with fewer workers",
      retry: "retry",
      alternatives: [],
    }
    : { ...row, retry: "permanent", alternatives: [] };
}

// An engine that wants more than an empty card has free blames nobody's process but its own setting.
function withShare(diagnosis: Diagnosis, line: string): Diagnosis {
  const [, free, total] = /\((\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?) ?GiB\)/.exec(line) ?? [];
  if (free === undefined || total === undefined || Number(total) <= 0) return diagnosis;
  if (1 - Number(free) / Number(total) > OWN_USE_SHARE) return diagnosis;
  const highest = Math.floor(Number(free) / Number(total) * 100 - 1) / 100;
  return {
    ...diagnosis,
    reason: "gpu_memory_share_too_high",
    meaning:
      `the engine wants a larger share of the GPU than is ever free (${free} of ${total} GiB)`,
    remedy: `give --gpu-memory-utilization ${highest} or less in the profile`,
    permanent: true,
  };
}

function factsFor({ reason, retry }: FailureRow, evidence: Evidence): readonly string[] {
  if (retry === "when_memory_free") return gpuWords(evidence.gpus ?? []);
  const faults = faultWords(evidence);
  if (faults.length > 0) return faults;
  if (reason === MEMLOCK_LIMITED) return memlockWords(evidence);
  const ofSpace = ["disk_full", "shm_too_small", "shm_offload_failed", "bus_error"];
  if (reason === "nccl_system_error") return [...spaceWords(evidence), ...memlockWords(evidence)];
  return ofSpace.includes(reason) ? spaceWords(evidence) : [];
}

function fromFault(grave: GpuFault, found: Found | undefined, evidence: Evidence): Diagnosis {
  const { index, verdict } = grave;
  return {
    reason: verdict === "nvlink" ? "nvlink_fault" : "gpu_fault",
    meaning: verdict === "nvlink"
      ? `the NVLinks of GPU ${index} failed while it ran`
      : `GPU ${index} failed while it ran, by what the kernel logged`,
    remedy: "drain the node and reboot it; have the GPU replaced if the fault returns",
    permanent: false,
    alternatives: [],
    facts: faultWords(evidence),
    ...(found === undefined ? {} : {
      said: { process: found.process, line: found.line, number: found.number },
    }),
  };
}

// The program's own fault, as the driver sees it: all there is to go by where nothing else speaks.
function fromLightFault(
  evidence: Evidence,
  byLog: Diagnosis | undefined,
): Diagnosis | undefined {
  const facts = faultWords(evidence);
  if (facts.length === 0 || byLog !== undefined) return undefined;
  return {
    reason: "gpu_program_fault",
    meaning: "the driver ended its work on a GPU for something that the program did there",
    remedy: "try another version of the engine; look up the Xid in NVIDIA's catalog",
    permanent: false,
    alternatives: [],
    facts,
  };
}

function outOfHostMemory(found: Found | undefined): Diagnosis {
  return {
    reason: "host_out_of_memory",
    meaning: "the kernel ended it because the host's memory, or its control group's, ran out",
    remedy:
      "give the host more memory, load with fewer workers, or lower what the engine keeps in " +
      "host memory (--swap-space, --cpu-offload-gb, --cache-ram)",
    permanent: false,
    alternatives: [],
    facts: [],
    ...(found === undefined ? {} : {
      said: { process: found.process, line: found.line, number: found.number },
    }),
  };
}

const CRASHES: Readonly<Record<string, string>> = {
  SIGSEGV: "its code crashed (a bad memory access)",
  SIGABRT: "its code gave up (an assertion, or C++ without a handler)",
  SIGILL: "its code uses instructions that this CPU lacks, such as AVX2",
  SIGBUS: "memory that was mapped from a file could not be had: /dev/shm or a disk is full",
  SIGFPE: "its code divided by zero",
};

function fromExit(evidence: Evidence): Diagnosis | undefined {
  const { exit } = evidence;
  const because = { alternatives: [], permanent: false };
  if (exit === undefined) return undefined;
  const { signal, code } = exit;
  if (signal === "SIGKILL") {
    return {
      ...because,
      reason: "killed",
      meaning: "it was killed from outside: no engine sends SIGKILL to itself",
      remedy: "look in dmesg for the kernel's OOM killer, else for who sent SIGKILL",
      facts: spaceWords(evidence),
    };
  }
  const crash = CRASHES[signal];
  if (crash !== undefined) {
    return {
      ...because,
      reason: signal === "SIGILL" ? "cpu_instruction_missing" : "engine_crashed",
      meaning: crash,
      remedy: signal === "SIGILL"
        ? "install a build for this CPU, or give the virtual machine the host's CPU type"
        : "try another version of the engine; if the same GPU is hit again, look for Xid in dmesg",
      permanent: signal === "SIGILL",
      facts: spaceWords(evidence),
    };
  }
  if (code !== 126 && code !== 127) return undefined;
  return {
    ...because,
    reason: "engine_not_executable",
    meaning: code === 127 ? "its program was not found" : "its program cannot be executed",
    remedy: "correct the engine's path in agent.yaml, and see that the file may be executed",
    permanent: true,
    facts: [],
  };
}

function unexplained(logs: readonly ProcessLog[], evidence: Evidence): Diagnosis | undefined {
  for (const { process, digest } of logs) {
    const line = digest.unexplained;
    if (line === undefined) continue;
    return {
      reason: "unexplained",
      meaning: "its log has an error of no known kind",
      remedy: "read the log from there on",
      permanent: false,
      alternatives: [],
      facts: [
        ...faultWords(evidence),
        ...spaceWords(evidence).filter(() => fullPlace(evidence) !== undefined),
      ],
      said: { process, line },
    };
  }
  return undefined;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
