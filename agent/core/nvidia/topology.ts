/**
 * The matrix of `nvidia-smi topo -m`. It comes with or without ANSI codes, parted by tabs or (when
 * pasted) by blanks, with or without columns for adapters and NUMA nodes, and its headings contain
 * blanks. So columns are counted by their GPU and adapter names, and a matrix that does not add up
 * is refused as a whole: unknown links are not absent links.
 */

export interface Topology {
  /** Indices of the GPUs in the matrix, ascending. */
  readonly gpus: readonly number[];
  /** Pairs of GPUs joined by NVLink, lower index first, with the number of bonded links. */
  readonly nvlinks: readonly NvLink[];
  /** NUMA node next to a GPU, by GPU index; absent is unknown. */
  readonly numaNodes: ReadonlyMap<number, number>;
  /** How near each RDMA adapter is, by GPU index. */
  readonly adapters: ReadonlyMap<number, readonly AdapterDistance[]>;
}

export interface NvLink {
  readonly a: number;
  readonly b: number;
  readonly links: number;
}

export interface AdapterDistance {
  /** Name of the RDMA device, or the matrix's own `NIC3` when no legend names it. */
  readonly name: string;
  /** `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, nearest first. */
  readonly distance: string;
}

export type TopologyReading =
  | { readonly kind: "known"; readonly topology: Topology }
  | { readonly kind: "unknown"; readonly why: string };

/** More GPUs than this on one node is not a matrix of nvidia-smi (the largest boxes have 16). */
const GPU_COUNT_MAX = 128;

const PATH_WORD = /^(?:X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC)$/;

// deno-lint-ignore no-control-regex -- escape codes are what is looked for
const ANSI = /\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])/g;

/** Headings in a line without tabs: the known ones of several words, else single words. */
const HEADING = /CPU\s+Affinity|NUMA\s+Affinity|GPU\s+NUMA\s+ID|\S+/g;

interface Header {
  readonly columns: readonly string[];
  /** Headings after the matrix, such as `CPU Affinity`. */
  readonly trailing: readonly string[];
  readonly tabs: boolean;
}

interface MatrixRow {
  readonly label: string;
  readonly cells: readonly string[];
  readonly trailing: readonly string[];
}

/** Reads the matrix. Never throws. */
export function parseTopology(stdout: string): TopologyReading {
  const lines = stdout.replace(ANSI, "").split(/\r?\n/);
  const headerAt = lines.findIndex(isHeader);
  const header = headerAt < 0 ? undefined : parseHeader(lines[headerAt] ?? "");
  if (header === undefined) return unknown("there is no heading with GPU names");
  if (typeof header === "string") return unknown(header);
  const rows = new Map<string, MatrixRow>();
  for (const line of lines.slice(headerAt + 1)) {
    if (/^\s*Legend:/.test(line)) break;
    const row = parseRow(line, header);
    if (row === undefined) continue;
    if (rows.has(row.label)) return unknown(`${row.label} has two rows`);
    rows.set(row.label, row);
  }
  return assemble(header, rows, parseLegend(lines));
}

function isHeader(line: string): boolean {
  const words = line.trim().split(/\s+/);
  return /^GPU\d{1,3}$/.test(words[0] ?? "") && !words.includes("X");
}

function parseHeader(line: string): Header | string {
  const tabs = line.includes("\t");
  // Over the rows' names is a column without a heading, and only where nobody has trimmed the line.
  const parts = tabs
    ? line.replace(/^\s*\t/, "").split("\t").map((part) => part.trim())
    : [...line.matchAll(HEADING)].map((match) => match[0].replace(/\s+/g, " "));
  // A heading of the matrix is one word; the first with a blank in it (`CPU Affinity`) ends it.
  const end = parts.findIndex((part) => part === "" || /\s/.test(part));
  const columns = end < 0 ? parts : parts.slice(0, end);
  const trailing = end < 0 ? [] : parts.slice(end);
  const glued = columns.find((name) => /(?:GPU|NIC)\d+(?:GPU|NIC)\d+/.test(name));
  if (glued !== undefined) return `the heading ${glued} is two names in one`;
  if (new Set(columns).size !== columns.length) return "a heading occurs twice";
  if (columns.filter(isGpu).length > GPU_COUNT_MAX) return `more than ${GPU_COUNT_MAX} GPUs`;
  return { columns, trailing, tabs };
}

/** A row of a GPU; rows of adapters and other lines are of no use here. */
function parseRow(line: string, header: Header): MatrixRow | undefined {
  const tabs = header.tabs && line.includes("\t");
  const parts = (tabs ? line.split("\t") : line.trim().split(/\s+/)).map((part) => part.trim());
  const label = parts[0] ?? "";
  if (!isGpu(label)) return undefined;
  const end = 1 + header.columns.length;
  return { label, cells: parts.slice(1, end), trailing: parts.slice(end) };
}

/** `NIC0: mlx5_0` lines at the bottom. */
function parseLegend(lines: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const line of lines) {
    const [, label, device] = /^\s*(NIC\d{1,3}):\s*([\w.-]{1,64})\s*$/.exec(line) ?? [];
    if (label !== undefined && device !== undefined) names.set(label, device);
  }
  return names;
}

function assemble(
  header: Header,
  rows: ReadonlyMap<string, MatrixRow>,
  legend: ReadonlyMap<string, string>,
): TopologyReading {
  const labels = header.columns.filter(isGpu);
  if (labels.length === 0) return unknown("there is no column of a GPU");
  const rowless = labels.find((label) => !rows.has(label));
  if (rowless !== undefined) return unknown(`${rowless} has a column and no row`);
  const nvlinks: NvLink[] = [];
  const numaNodes = new Map<number, number>();
  const adapters = new Map<number, readonly AdapterDistance[]>();
  const cell = (row: string, column: string): string =>
    rows.get(row)?.cells[header.columns.indexOf(column)] ?? "";
  for (const label of labels) {
    const row = rows.get(label);
    if (row === undefined) continue;
    if (row.cells.length !== header.columns.length) return unknown(`the row ${label} is short`);
    if (PATH_WORD.test(row.trailing[0] ?? "")) return unknown(`the row ${label} is too long`);
    if (cell(label, label) !== "X") return unknown(`${label} is not X to itself`);
    for (const other of labels) {
      const path = cell(label, other);
      if (!PATH_WORD.test(path)) return unknown(`${label} to ${other} says "${path}"`);
      if (path !== cell(other, label)) return unknown(`${label} and ${other} do not agree`);
      if (other !== label && path === "X") return unknown(`${label} to ${other} says X`);
      const links = Number(/^NV(\d+)$/.exec(path)?.[1] ?? 0);
      const [a, b] = [gpuIndex(label), gpuIndex(other)];
      if (links > 0 && a < b) nvlinks.push({ a, b, links });
    }
    const numaNode = numaNodeOf(header, row);
    if (numaNode !== undefined) numaNodes.set(gpuIndex(label), numaNode);
    adapters.set(gpuIndex(label), adapterDistances(header, row, legend));
  }
  for (const label of rows.keys()) {
    if (!labels.includes(label)) return unknown(`${label} has a row and no column`);
  }
  const gpus = labels.map(gpuIndex).sort((a, b) => a - b);
  return { kind: "known", topology: { gpus, nvlinks, numaNodes, adapters } };
}

/**
 * The node under `NUMA Affinity`: a number, or of a list (`0,5-11`, where the rest is memory of the
 * GPUs themselves) the first. The column may be missing, or shifted when another one is.
 */
function numaNodeOf(header: Header, row: MatrixRow): number | undefined {
  const at = header.trailing.indexOf("NUMA Affinity");
  if (at < 0) return undefined;
  if (!header.tabs && row.trailing.length !== header.trailing.length) return undefined;
  const digits = /^(\d{1,5})(?:[,-][\d,-]*)?$/.exec(row.trailing[at] ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const NEAREST_FIRST: readonly string[] = ["PIX", "PXB", "PHB", "NODE", "SYS"];

function adapterDistances(
  header: Header,
  row: MatrixRow,
  legend: ReadonlyMap<string, string>,
): readonly AdapterDistance[] {
  return header.columns.flatMap((column, at) => {
    const distance = row.cells[at] ?? "";
    if (isGpu(column) || !NEAREST_FIRST.includes(distance)) return [];
    return [{ name: legend.get(column) ?? column, distance }];
  }).sort((a, b) => NEAREST_FIRST.indexOf(a.distance) - NEAREST_FIRST.indexOf(b.distance));
}

function isGpu(label: string): boolean {
  return /^GPU\d{1,3}$/.test(label);
}

function gpuIndex(label: string): number {
  return Number(label.slice("GPU".length));
}

function unknown(why: string): TopologyReading {
  return { kind: "unknown", why };
}
