/**
 * Reads one line of an engine's log: what is said, how grave it is, and when. Engines, their
 * workers, Ray, journald and container runtimes each put something in front, often several of them.
 */

export type Level = "error" | "warning" | "info" | "none";

export interface LogLine {
  /** What is said, without colours and without what stands before it. */
  readonly text: string;
  /** "none": the line does not say. */
  readonly level: Level;
  /** Grows with time within a year, in ms; undefined: the line does not say. */
  readonly time: number | undefined;
}

/** Longer lines are dumps of arguments; what is wrong is said at the start. */
const LINE_LENGTH_MAX = 4_096;
/** So many things stand before a line at most. */
const PREFIXES_MAX = 8;

// deno-lint-ignore no-control-regex
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])/g;

const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";

interface Prefix {
  readonly pattern: RegExp;
  readonly read?: (groups: Readonly<Record<string, string>>) => Partial<Omit<LogLine, "text">>;
}

const CLOCK = String.raw`(?<h>\d{2}):(?<m>\d{2}):(?<s>\d{2})(?:[.,](?<f>\d{1,9}))?`;
const LEVEL = "(?<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)";

const PREFIXES: readonly Prefix[] = [
  // Container runtimes: 2026-09-01T10:00:00.123456789Z stderr F …
  {
    pattern: new RegExp(
      String
        .raw`^\d{4}-(?<mo>\d{2})-(?<d>\d{2})T${CLOCK}(?:Z|[+-]\d{2}:?\d{2})?(?: std(?:out|err) [FP])?\s+`,
    ),
    read: (groups) => ({ time: timeOf(groups) }),
  },
  // journald: Sep 10 12:00:00 host program[12]: …
  {
    pattern: new RegExp(
      String.raw`^(?<mon>${
        MONTHS.match(/.{3}/g)?.join("|")
      }) {1,2}(?<d>\d{1,2}) ${CLOCK} \S+ [^\s:]+: `,
    ),
    read: (groups) => ({ time: timeOf(groups) }),
  },
  // docker compose, and our own mark: "worker-1  | ", "[server] "
  { pattern: /^[\w.-]{1,64}\s{0,40}\| / },
  { pattern: /^\[(?:server|head|worker|sidecar)[\w -]{0,32}\] / },
  // (EngineCore_DP0 pid=12), (RayWorkerWrapper pid=12, ip=10.0.0.2), (pid=12)
  { pattern: /^\((?:[\w.:-]{1,64} )?pid=\d+(?:, ip=[\w.:]+)?\)\s?/ },
  // Its level, as uvicorn writes it: "ERROR:    …"
  { pattern: new RegExp(`^${LEVEL}:\\s+`), read: levelOf },
  // vLLM: ERROR 09-01 12:00:00 [core.py:123] …
  {
    pattern: new RegExp(
      String.raw`^${LEVEL} (?<mo>\d{2})-(?<d>\d{2}) ${CLOCK} (?:\[[\w./-]{1,120}:\d+\] ?)?`,
    ),
    read: (groups) => ({ ...levelOf(groups), time: timeOf(groups) }),
  },
  // PyTorch: [rank0]:[E910 12:00:00.123456789 ProcessGroupNCCL.cpp:123] …
  {
    pattern: new RegExp(
      String
        .raw`^(?:\[rank\d+\]:)?\[(?<letter>[IWEF])(?<mo>\d{1,2})(?<d>\d{2}) ${CLOCK}[^\]]{0,120}\]\s?`,
    ),
    read: (groups) => ({ level: letterLevel(groups["letter"]), time: timeOf(groups) }),
  },
  // [rank0]: …, [TP0] …, TP0] …
  { pattern: /^\[rank\d+\]:\s?/ },
  { pattern: /^\[?(?:(?:TP|DP|PP|EP)\d+ ?){1,4}\] ?/ },
  // SGLang: [2026-09-01 12:00:00 DP0 TP1] …
  {
    pattern: new RegExp(
      String.raw`^\[\d{4}-(?<mo>\d{2})-(?<d>\d{2}) ${CLOCK}(?: [\w ]{1,40})?\] ?`,
    ),
    read: (groups) => ({ time: timeOf(groups) }),
  },
  // Python's and Ray's: 2026-09-01 12:00:00,123 ERROR worker.py:12 -- … (or - name - ERROR - …)
  {
    pattern: new RegExp(
      String
        .raw`^\d{4}-(?<mo>\d{2})-(?<d>\d{2}) ${CLOCK}(?: - [\w.]{1,80})?[ -]{1,3}${LEVEL}\b(?: [\w./-]{1,120}:\d+)?(?: --? | -|:)?\s?`,
    ),
    read: (groups) => ({ ...levelOf(groups), time: timeOf(groups) }),
  },
  {
    pattern: new RegExp(String.raw`^\d{4}-(?<mo>\d{2})-(?<d>\d{2}) ${CLOCK}\s+`),
    read: (groups) => ({ time: timeOf(groups) }),
  },
  // llama.cpp: 0.00.123.456 E …
  {
    pattern: /^\d{1,6}\.\d{2}\.\d{3}\.\d{3} (?<letter>[DIWEF]) /,
    read: (groups) => ({ level: letterLevel(groups["letter"]) }),
  },
  // What vLLM leaves of a traceback's lines: "[core.py:123] …"
  { pattern: /^\[[\w./-]{1,120}\.(?:py|cpp|cc):\d+\] / },
  { pattern: new RegExp(`^\\[?${LEVEL}\\]?:? `), read: levelOf },
];

/** Never throws. */
export function readLogLine(line: string): LogLine {
  let text = withoutEscapes(line);
  let level: Level = "none";
  let time: number | undefined;
  for (let count = 0; count < PREFIXES_MAX; count++) {
    const found = firstPrefix(text);
    if (found === undefined) break;
    text = text.slice(found.length);
    if (found.said.level !== undefined && level === "none") level = found.said.level;
    time ??= found.said.time;
  }
  return { text: text.trimEnd(), level, time };
}

function firstPrefix(
  text: string,
): { readonly length: number; readonly said: Partial<Omit<LogLine, "text">> } | undefined {
  for (const { pattern, read } of PREFIXES) {
    const match = pattern.exec(text);
    if (match === null || match[0] === "") continue;
    return { length: match[0].length, said: read?.(match.groups ?? {}) ?? {} };
  }
  return undefined;
}

// A bar that shows progress overwrites itself: what stands there in the end is what it says.
function withoutEscapes(line: string): string {
  const short = line.slice(0, LINE_LENGTH_MAX).replaceAll(ESCAPES, "").trimEnd();
  return short.slice(short.lastIndexOf("\r") + 1);
}

function levelOf(groups: Readonly<Record<string, string>>): { readonly level: Level } {
  switch (groups["level"]) {
    case "ERROR":
    case "CRITICAL":
    case "FATAL":
      return { level: "error" };
    case "WARN":
    case "WARNING":
      return { level: "warning" };
    default:
      return { level: "info" };
  }
}

function letterLevel(letter: string | undefined): Level {
  return letter === "E" || letter === "F" ? "error" : letter === "W" ? "warning" : "info";
}

// Months of 31 days: only the order counts, and logs of one start do not span a new year.
function timeOf(groups: Readonly<Record<string, string | undefined>>): number {
  const { mo, mon, d, h, m, s, f = "" } = groups;
  const month = mon === undefined ? Number(mo) : MONTHS.indexOf(mon) / 3 + 1;
  const days = month * 31 + Number(d);
  const seconds = ((days * 24 + Number(h)) * 60 + Number(m)) * 60 + Number(s);
  return seconds * 1_000 + Number(f.padEnd(3, "0").slice(0, 3));
}
