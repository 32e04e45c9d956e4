/** The engine's log: lines like vLLM's, on stdout, never blocking and never growing without bound. */

/** Lines are dropped while this much waits for a reader that does not read. */
const BACKLOG_BYTES_MAX = 1 << 20;

const utf8 = new TextEncoder();
let backlogBytes = 0;
let tail: Promise<void> = Promise.resolve();

function write(line: string): void {
  const bytes = utf8.encode(line + "\n");
  if (backlogBytes + bytes.length > BACKLOG_BYTES_MAX) return;
  backlogBytes += bytes.length;
  tail = tail.then(() => writeAll(bytes)).finally(() => {
    backlogBytes -= bytes.length;
  });
}

async function writeAll(bytes: Uint8Array): Promise<void> {
  try {
    for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
  } catch {
    // Whoever read the log is gone; the engine goes on without it.
  }
}

function stamp(): string {
  return new Date().toISOString().slice(5, 19).replace("T", " ");
}

/** Writes one line. `where` is the part that speaks. */
export function log(level: "INFO" | "WARNING" | "ERROR", where: string, message: string): void {
  write(`${level} ${stamp()} [${where}] ${message}`);
}

/** Writes a line as it is: access lines, and the last words of a dying engine. */
export function logRaw(line: string): void {
  write(line);
}

/** Resolves when everything written so far is out. */
export function flushLog(): Promise<void> {
  return tail;
}
