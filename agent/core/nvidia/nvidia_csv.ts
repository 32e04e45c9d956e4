/**
 * Tables of `nvidia-smi --query-…=FIELDS --format=csv`. Data, error sentences and rows of errors
 * share one stdout, also when the exit code is not 0. So every line is looked at, and only one with
 * exactly as many cells as fields, and a UUID where a UUID belongs, is a row.
 */

/** Why a cell has no value. */
export type Absence =
  | "not_available"
  | "not_supported"
  | "no_permission"
  | "requires_reset"
  | "lost"
  | "error"
  | "empty"
  /** Some other word in brackets, from a driver newer than this table. */
  | "unrecognised";

export type Cell =
  | { readonly kind: "value"; readonly text: string }
  | { readonly kind: "absent"; readonly why: Absence };

/** Cells by field. */
export type Row = ReadonlyMap<string, Cell>;

export interface CsvTable {
  readonly rows: readonly Row[];
  /** Lines that are neither rows nor the header: sentences of the driver, rows of errors. */
  readonly rest: readonly string[];
}

const EMPTY: Cell = { kind: "absent", why: "empty" };

/** Words of every driver so far, lower case, without brackets. */
const ABSENCES: Readonly<Record<string, Absence>> = {
  "n/a": "not_available",
  "not available": "not_available",
  "not found": "not_available",
  "function not found": "not_available",
  "requested functionality has been deprecated": "not_available",
  "not supported": "not_supported",
  "insufficient permissions": "no_permission",
  "gpu requires reset": "requires_reset",
  "reset required": "requires_reset",
  "gpu is lost": "lost",
  "unknown error": "error",
  "err!": "error",
  "error": "error",
  "": "empty",
};

/** Longest table looked at, in characters: 64 GPUs with 40 fields are under 100,000. */
const TEXT_LENGTH_MAX = 4_000_000;

/** What one cell says. */
export function parseCell(text: string): Cell {
  const trimmed = text.trim();
  const bare = trimmed.replace(/^\[(.*)\]$/, "$1").trim().toLowerCase();
  const why = Object.hasOwn(ABSENCES, bare) ? ABSENCES[bare] : undefined;
  if (why !== undefined) return { kind: "absent", why };
  if (/^\[.*\]$/.test(trimmed)) return { kind: "absent", why: "unrecognised" };
  return { kind: "value", text: trimmed };
}

/**
 * Reads a table whose columns are `fields`, with or without a header. When `uuid` or `gpu_uuid` is
 * a field, a row has a value that starts `GPU-` there. Never throws.
 */
export function parseCsv(stdout: string, fields: readonly string[]): CsvTable {
  const rows: Row[] = [];
  const rest: string[] = [];
  const uuidAt = fields.findIndex((field) => field === "uuid" || field === "gpu_uuid");
  for (const raw of stdout.slice(0, TEXT_LENGTH_MAX).split(/\r?\n/)) {
    const line = raw.trim();
    if (line === "") continue;
    const texts = line.split(",");
    if (texts.length === fields.length && isHeader(texts, fields)) continue;
    if (texts.length !== fields.length || !isUuid(texts, uuidAt)) {
      rest.push(line);
      continue;
    }
    rows.push(new Map(fields.map((field, at) => [field, parseCell(texts[at] ?? "")])));
  }
  return { rows, rest };
}

function isHeader(texts: readonly string[], fields: readonly string[]): boolean {
  return texts.every((text, at) => text.trim().replace(/ \[[^\]]*\]$/, "") === fields[at]);
}

function isUuid(texts: readonly string[], uuidAt: number): boolean {
  return uuidAt < 0 || /^GPU-[0-9a-z-]+$/i.test(texts[uuidAt]?.trim() ?? "");
}

/** The cell of `field`; a field that was not asked is as good as empty. */
export function cellOf(row: Row | undefined, field: string): Cell {
  return row?.get(field) ?? EMPTY;
}

/** The text of a cell, or undefined when it has none. */
export function textOf(row: Row | undefined, field: string): string | undefined {
  const cell = cellOf(row, field);
  return cell.kind === "value" ? cell.text : undefined;
}

/** A number, with or without its unit; undefined when the cell has none. Unknown is never 0. */
export function numberOf(row: Row | undefined, field: string): number | undefined {
  const text = textOf(row, field);
  const digits = /^(-?\d{1,15}(?:\.\d{1,9})?)(?: ?(?:MiB|MB|%|W|MHz|C))?$/.exec(text ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** A whole number of 0 or more, as counts and sizes are. */
export function countOf(row: Row | undefined, field: string): number | undefined {
  const value = numberOf(row, field);
  return value !== undefined && value >= 0 && value <= 0xffff_ffff ? Math.floor(value) : undefined;
}

/**
 * What is known of a GPU after a new reading: a cell that has lost its value keeps the earlier one,
 * since name, size and address of a GPU do not change.
 */
export function mergeRows(earlier: Row | undefined, row: Row): Row {
  if (earlier === undefined) return row;
  const merged = new Map(earlier);
  for (const [field, cell] of row) {
    if (cell.kind === "value" || merged.get(field)?.kind !== "value") merged.set(field, cell);
  }
  return merged;
}
