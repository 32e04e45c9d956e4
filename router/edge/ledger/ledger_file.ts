/**
 * Usage records on disk until control has them, in files that are only ever appended to and then
 * removed whole. A line is a record; the first one says the format. What a crash cut off is the end
 * of the last line, and nothing else.
 */
import { join } from "node:path";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { type UsageRecord as WireRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import { z } from "zod";

const VERSION = 1;
const NAME = /^usage-\d{15}-[0-9a-f]{8}\.jsonl$/;

const headSchema = z.object({ heddle_usage: z.number() });
const lineSchema = z.object({ ended_at_ms: z.number(), record: z.json() });

export interface LedgerEntry {
  readonly record: WireRecord;
  /** Milliseconds since 1970, by this machine's clock. */
  readonly endedAtMs: number;
}

/** A file of records that is still being written, or waits to be sent. */
export interface LedgerFile {
  readonly path: string;
  bytes: number;
  /** While it is appended to. */
  open: Deno.FsFile | undefined;
}

export interface ReadLedger {
  readonly entries: readonly LedgerEntry[];
  /** Lines that cannot be read, the cut one at the end left out. */
  readonly unreadable: number;
  /** It is of another version: it must stay as it is. */
  readonly foreign: boolean;
}

export class LedgerFolder {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Files that an earlier run left, oldest first. */
  async list(): Promise<LedgerFile[]> {
    const found: LedgerFile[] = [];
    try {
      for await (const { name, isFile } of Deno.readDir(this.#folder)) {
        if (!isFile || !NAME.test(name)) continue;
        const path = join(this.#folder, name);
        found.push({ path, bytes: (await Deno.stat(path)).size, open: undefined });
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    return found.sort((a, b) => a.path < b.path ? -1 : 1);
  }

  /** A new file, of which nothing is on disk yet. */
  create(): LedgerFile {
    const time = String(Date.now()).padStart(15, "0");
    const name = `usage-${time}-${crypto.randomUUID().slice(0, 8)}.jsonl`;
    return { path: join(this.#folder, name), bytes: 0, open: undefined };
  }

  /**
   * Appends lines. A process that is killed has lost nothing of them then; a machine that loses power
   * may, until `sync`.
   */
  async append(file: LedgerFile, lines: Uint8Array): Promise<void> {
    if (file.open === undefined) {
      await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
      file.open = await Deno.open(file.path, {
        write: true,
        create: true,
        append: true,
        mode: 0o600,
      });
    }
    // One write where it can be: until it is done, a kill would lose what it holds.
    for (let rest = file.bytes === 0 ? withHead(lines) : lines; rest.length > 0;) {
      const written = await file.open.write(rest);
      file.bytes += written;
      rest = rest.subarray(written);
    }
  }

  /** Nothing more is appended. */
  close(file: LedgerFile): void {
    file.open?.close();
    file.open = undefined;
  }

  /** Waits until what was appended is on disk. */
  async sync(file: LedgerFile): Promise<void> {
    let open: Deno.FsFile;
    try {
      open = await Deno.open(file.path, { write: true });
    } catch (error) {
      // Control had it all meanwhile.
      if (error instanceof Deno.errors.NotFound) return;
      throw error;
    }
    try {
      await open.syncData();
    } finally {
      open.close();
    }
  }

  async read(file: LedgerFile): Promise<ReadLedger> {
    const lines = (await Deno.readTextFile(file.path)).split("\n");
    // Without a line break after it, a line was not written to its end.
    lines.pop();
    const [head, ...rest] = lines;
    const parsed = headSchema.safeParse(parsedJson(head ?? ""));
    if (head !== undefined && (!parsed.success || parsed.data.heddle_usage !== VERSION)) {
      return { entries: [], unreadable: 0, foreign: true };
    }
    const entries: LedgerEntry[] = [];
    let unreadable = 0;
    for (const [index, line] of rest.entries()) {
      const entry = readLine(line);
      if (entry === undefined) unreadable++;
      else entries.push(entry);
      // A file holds some ten thousand records; others may run in between.
      if (index % 500 === 499) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    return { entries, unreadable, foreign: false };
  }

  async remove(file: LedgerFile): Promise<void> {
    try {
      await Deno.remove(file.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

const HEAD = new TextEncoder().encode(`${JSON.stringify({ heddle_usage: VERSION })}\n`);

function withHead(lines: Uint8Array): Uint8Array {
  const all = new Uint8Array(HEAD.length + lines.length);
  all.set(HEAD);
  all.set(lines, HEAD.length);
  return all;
}

export function linesOf(entries: readonly LedgerEntry[]): Uint8Array {
  const lines = entries.map(({ record, endedAtMs }) =>
    JSON.stringify({ ended_at_ms: endedAtMs, record: toJson(UsageRecordSchema, record) })
  );
  return new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
}

function readLine(line: string): LedgerEntry | undefined {
  const read = lineSchema.safeParse(parsedJson(line));
  if (!read.success) return undefined;
  try {
    const record = fromJson(UsageRecordSchema, read.data.record, { ignoreUnknownFields: true });
    return record.id === "" ? undefined : { record, endedAtMs: read.data.ended_at_ms };
  } catch {
    return undefined;
  }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
