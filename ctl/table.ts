/**
 * Lists in every output format. A terminal gets aligned columns; a pipe gets the same cells
 * separated by tabs; machines get JSON, YAML or CSV of the whole records.
 */
import { stringify } from "yaml";
import type { Io } from "./io.ts";

export const OUTPUTS = ["table", "wide", "json", "yaml", "csv"] as const;
export type Output = (typeof OUTPUTS)[number];

/** One column of a list of `Row`. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  /** Only shown by `-o wide`. */
  readonly wide?: boolean;
}

/** A list as a command gives it: typed rows, their columns, and what JSON shows for a row. */
export interface Listing<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** Plain data for json, yaml and csv. */
  readonly record: (row: Row) => Readonly<Record<string, unknown>>;
  /** The records' names, for the first line of CSV without a record. */
  readonly fields: readonly string[];
  /** Said when there are no rows, and what to do then: on standard error in a pipe. */
  readonly empty: string;
  /** Lines for people, below a table; empty when there is nothing to say. */
  readonly footer?: (rows: readonly Row[]) => string;
}

/** Writes the list to `io` in the wanted form. */
export function writeListing<Row>(io: Io, listing: Listing<Row>, output: Output): void {
  switch (output) {
    case "json":
      io.out(`${JSON.stringify(listing.rows.map(listing.record), null, 2)}\n`);
      return;
    case "yaml":
      io.out(stringify(listing.rows.map(listing.record)));
      return;
    case "csv":
      io.out(formatCsv(listing.rows.map(listing.record), listing.fields));
      return;
    case "table":
    case "wide":
      io.out(formatTable(listing, { aligned: io.terminal, wide: output === "wide" }));
      // A pipe gets the heads alone; a person reads why.
      if (listing.rows.length === 0 && !io.terminal) io.err(`${listing.empty}\n`);
      // Lines that are no rows would spoil what a pipe reads, and are for people all the same.
      (io.terminal ? io.out : io.err)(listing.footer?.(listing.rows) ?? "");
      return;
  }
}

/** Rows in columns; aligned for a terminal, and else separated by tabs. */
export function formatTable<Row>(
  listing: Pick<Listing<Row>, "rows" | "columns" | "empty">,
  options: { aligned: boolean; wide: boolean; heads?: boolean },
): string {
  if (listing.rows.length === 0 && options.aligned && options.heads !== true) {
    return `${listing.empty}\n`;
  }
  const columns = listing.columns.filter((column) => options.wide || column.wide !== true);
  const lines = [
    columns.map((column) => column.title),
    ...listing.rows.map((row) => columns.map((column) => visible(column.cell(row)))),
  ];
  if (!options.aligned) return lines.map((cells) => `${cells.join("\t")}\n`).join("");
  const widths = columns.map((_, index) =>
    Math.max(...lines.map((cells) => cells[index]?.length ?? 0))
  );
  return lines.map((cells) => {
    const padded = cells.map((cell, index) => cell.padEnd(widths[index] ?? 0));
    return `${padded.join("  ").trimEnd()}\n`;
  }).join("");
}

/** What an engine or a node says must not move the cursor, add a row or shift a column. */
export function visible(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim() || "-";
}

/** With the records' names first, or `fields` without a record. */
export function formatCsv(
  records: readonly Readonly<Record<string, unknown>>[],
  fields: readonly string[],
): string {
  const [first] = records;
  const names = first === undefined ? fields : Object.keys(first);
  const line = (cells: readonly unknown[]) => `${cells.map(csvCell).join(",")}\r\n`;
  if (names.length === 0) return "";
  return line(names) + records.map((record) => line(names.map((name) => record[name]))).join("");
}

// A cell that begins like a formula would be run by a spreadsheet.
function csvCell(value: unknown): string {
  const text = value === undefined || value === null
    ? ""
    : typeof value === "object"
    ? JSON.stringify(value)
    : String(value);
  const safe = typeof value === "string" && /^[=+@\t\r-]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
