/**
 * Structured logs on standard error, as text for people or JSON for machines. Secrets do not reach
 * the log: values under names that say key, token, secret, password or authorization are replaced,
 * and so is anything in a text that looks like a Heddle key.
 */
import { configure, getLogger, type Logger, type LogRecord, type Sink } from "@logtape/logtape";

export type { Logger };
export type LogFormat = "text" | "json";
export type LogLevel = "debug" | "info" | "warning" | "error";

const SECRET_NAME = /(api_?key|token|secret|password|authorization|credential)$/i;
const SECRET_TEXT = /\bsk-[A-Za-z0-9_-]{8,}|\bhf_[A-Za-z0-9]{8,}|(?<=Bearer )\S+/g;
const HIDDEN = "[hidden]";

/** Starts logging; call once, at the top of a program. `write` gets one line with its end. */
export async function startLogging(
  options: { format: LogFormat; level: LogLevel; write?: (line: string) => void },
): Promise<void> {
  const write = options.write ?? writeToStderr;
  const format = options.format === "json" ? formatJson : formatText;
  const sink: Sink = (record) => {
    const line = format(record);
    write(line);
    for (const listener of listeners) listener(line);
  };
  await configure({
    reset: true,
    sinks: { sink },
    loggers: [
      { category: ["logtape", "meta"], lowestLevel: "warning", sinks: ["sink"] },
      { category: ["heddle"], lowestLevel: options.level, sinks: ["sink"] },
    ],
  });
}

const listeners = new Set<(line: string) => void>();

/** Calls `listener` with each line that is logged from now on. Returns what ends it. */
export function tapLog(listener: (line: string) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The logger of one part of a program, e.g. `logger("router", "relay")`. */
export function logger(...category: string[]): Logger {
  return getLogger(["heddle", ...category]);
}

/** `value` with every secret replaced, and errors as text. Never throws. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return value.replace(SECRET_TEXT, HIDDEN);
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Error) {
    const cause = value.cause === undefined ? "" : `: ${redact(errorLine(value.cause), depth + 1)}`;
    return `${redact(errorLine(value))}${cause}`;
  }
  // Deeper than any value we log on purpose; a cycle ends here too.
  if (depth > 6) return "…";
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (typeof value === "object" && value !== null) return redactFields(value, depth);
  return value;
}

function redactFields(value: object, depth = 0): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      SECRET_NAME.test(name) && item !== "" && item !== undefined
        ? HIDDEN
        : redact(item, depth + 1),
    ]),
  );
}

function errorLine(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function messageOf(record: LogRecord): string {
  return record.message.map((part) => typeof part === "string" ? part : String(part)).join("");
}

function formatJson(record: LogRecord): string {
  const frame = {
    time: new Date(record.timestamp).toISOString(),
    level: record.level,
    logger: record.category.slice(1).join("."),
    message: redact(messageOf(record)),
  };
  const properties = Object.entries(redactFields(record.properties))
    // A property must not take the place of the record's own members.
    .map(([name, value]) => [name in frame ? `${name}_` : name, value]);
  return `${JSON.stringify({ ...frame, ...Object.fromEntries(properties) })}\n`;
}

function formatText(record: LogRecord): string {
  const time = new Date(record.timestamp).toISOString().slice(11, 23);
  const level = record.level.slice(0, 4).toUpperCase().padEnd(4);
  const properties = Object.entries(redactFields(record.properties))
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${quoted(value)}`)
    .join("");
  const text = redact(messageOf(record));
  return `${time} ${level} ${record.category.slice(1).join(".")}: ${text}${properties}\n`;
}

function quoted(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /[\s"=]/.test(text) && typeof value === "string" ? JSON.stringify(text) : text;
}

const encoder = new TextEncoder();

function writeToStderr(line: string): void {
  let bytes = encoder.encode(line);
  try {
    while (bytes.length > 0) bytes = bytes.subarray(Deno.stderr.writeSync(bytes));
  } catch {
    // Standard error is gone (a closed pipe); a program must not die of not being heard.
  }
}
