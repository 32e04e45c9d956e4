/**
 * Reads a growing file of lines, and keeps it bounded. The process that writes it opened it for
 * appending, so cutting it to nothing is safe: the next line begins it anew.
 */
import { delay } from "@heddle/common/task";

/** Size at which a log is cut, and how much of its end is kept beside it in FILE.old. */
const LOG_BYTES_MAX = 64 * 1024 * 1024;
const KEPT_BYTES = 4 * 1024 * 1024;
/** How far back a tail looks: enough for thousands of lines. */
const TAIL_BYTES_MAX = 4 * 1024 * 1024;
/** A line longer than this is shown in pieces. */
const LINE_LENGTH_MAX = 16 * 1024;
const FOLLOW_POLL_MS = 200;
const READ_BYTES = 64 * 1024;
/** How often a file that grows while it is cut is read on before that. */
const CUT_ROUNDS_MAX = 8;

/** The last `count` lines, oldest first; none when the file does not exist. */
export async function tailLines(path: string, count: number): Promise<readonly string[]> {
  return (await readTail(path, count)).lines;
}

/** The same, and how far into the file they reach: what is printed meanwhile begins there. */
async function readTail(
  path: string,
  count: number,
): Promise<{ readonly lines: readonly string[]; readonly size: number }> {
  const { text, size } = await readEnd(path, count === 0 ? 0 : TAIL_BYTES_MAX);
  if (count === 0) return { lines: [], size };
  const lines = linesOf(text);
  if (lines.length >= count) return { lines: lines.slice(-count), size };
  const { text: before } = await readEnd(`${path}.old`, KEPT_BYTES);
  return { lines: [...linesOf(before), ...lines].slice(-count), size };
}

/**
 * What follows the last `count` lines, batch by batch, until `signal` aborts, or all was read and
 * `isOver` says that nothing more will be written. Yields those first, also when there are none.
 */
export async function* followLines(
  path: string,
  count: number,
  signal: AbortSignal,
  isOver: () => boolean = () => false,
): AsyncGenerator<readonly string[]> {
  const { lines: first, size } = await readTail(path, count);
  let at = size;
  yield first;
  let rest = "";
  const decoder = new TextDecoder();
  while (!signal.aborted) {
    // Asked before reading: what was written until it was over is read.
    const over = isOver();
    const read = await readFrom(path, at);
    if (read === undefined || read.bytes.length === 0) {
      // Shorter than where we were: it was cut.
      if (read !== undefined && read.size < at) at = 0;
      else if (over) break;
      else await delay(FOLLOW_POLL_MS, signal);
      continue;
    }
    at += read.bytes.length;
    const lines = (rest + decoder.decode(read.bytes, { stream: true })).split(/\r?\n/);
    rest = lines.pop() ?? "";
    if (rest.length > LINE_LENGTH_MAX) {
      lines.push(rest);
      rest = "";
    }
    if (lines.length > 0) yield lines.flatMap(pieces);
  }
  // Last words that no newline ends.
  if (rest !== "") yield pieces(rest);
}

/** How a log is bounded. */
export interface Bound {
  readonly bytesMax?: number;
  /** Called before the file is cut, perhaps several times: whoever reads it on does so now. */
  readonly beforeCut?: () => Promise<void>;
}

/** Cuts the file when it has grown too large. Returns true when it did. */
export async function boundLog(path: string, bound: Bound = {}): Promise<boolean> {
  const { bytesMax = LOG_BYTES_MAX, beforeCut } = bound;
  const size = await fileSize(path);
  if (size === undefined || size <= bytesMax) return false;
  using file = await Deno.open(path, { read: true, write: true });
  using old = await Deno.open(`${path}.old`, {
    write: true,
    create: true,
    truncate: true,
    mode: 0o600,
  });
  let at = Math.max(0, size - Math.min(KEPT_BYTES, bytesMax));
  // An engine prints while we copy, and its last words would be cut off unread. So it is cut only when
  // all was seen, or when it does not stop: then it is a flood, and nobody will miss some of it.
  for (let round = 0; round < CUT_ROUNDS_MAX; round++) {
    at = copyOn(file, old, at);
    await beforeCut?.();
    if (file.statSync().size === at) break;
  }
  file.truncateSync(0);
  return true;
}

/** Copies what is there from `at` on, a few MiB at most; returns how far it came. */
function copyOn(file: Deno.FsFile, to: Deno.FsFile, at: number): number {
  const buffer = new Uint8Array(READ_BYTES);
  const end = Math.min(file.statSync().size, at + KEPT_BYTES);
  file.seekSync(at, Deno.SeekMode.Start);
  for (let position = at; position < end;) {
    const count = file.readSync(buffer) ?? 0;
    if (count === 0) return position;
    for (let rest = buffer.subarray(0, count); rest.length > 0;) {
      rest = rest.subarray(to.writeSync(rest));
    }
    position += count;
    if (position >= end) return position;
  }
  return at;
}

/** Bytes of a file; undefined when it does not exist. */
export async function fileSize(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

interface End {
  readonly bytes: Uint8Array;
  readonly text: string;
  readonly size: number;
}

async function readEnd(path: string, bytesMax: number): Promise<End> {
  const size = await fileSize(path) ?? 0;
  const from = Math.max(0, size - bytesMax);
  const parts: Uint8Array[] = [];
  for (let at = from; at < size;) {
    const read = await readFrom(path, at);
    if (read === undefined || read.bytes.length === 0) break;
    parts.push(read.bytes.subarray(0, size - at));
    at += read.bytes.length;
  }
  const bytes = new Uint8Array(await new Blob(parts.map((part) => part.slice())).arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  // The first line is whole only when the file begins with it.
  return { bytes, size, text: from === 0 ? text : text.slice(text.indexOf("\n") + 1) };
}

/** Some bytes from `at` on, none at its end; undefined when the file does not exist. */
export async function readFrom(
  path: string,
  at: number,
): Promise<{ bytes: Uint8Array; size: number } | undefined> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path, { read: true });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  try {
    const { size } = await file.stat();
    if (size <= at) return { bytes: new Uint8Array(), size };
    await file.seek(at, Deno.SeekMode.Start);
    const buffer = new Uint8Array(Math.min(READ_BYTES, size - at));
    const count = await file.read(buffer) ?? 0;
    return { bytes: buffer.subarray(0, count), size };
  } finally {
    file.close();
  }
}

function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines.flatMap(pieces);
}

function pieces(line: string): readonly string[] {
  if (line.length <= LINE_LENGTH_MAX) return [line];
  return Array.from(
    { length: Math.ceil(line.length / LINE_LENGTH_MAX) },
    (_, index) => line.slice(index * LINE_LENGTH_MAX, (index + 1) * LINE_LENGTH_MAX),
  );
}
