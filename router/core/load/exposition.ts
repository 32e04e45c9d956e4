/** Prometheus' text format, as far as a gauge or counter of an engine is read from it. */

export interface Series {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** A metric's name, its labels if any, its value; a timestamp may follow. */
const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The series whose names `wanted` has, in order. Lines that make no sense say nothing. */
export function readSeries(text: string, wanted: (name: string) => boolean): readonly Series[] {
  const found: Series[] = [];
  for (const line of text.split("\n")) {
    // Most lines are buckets of histograms: their name alone decides.
    const end = line.search(/[{\s]/);
    if (end <= 0 || !wanted(line.slice(0, end))) continue;
    const [, name, labels, value] = LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    found.push({ name, labels: readLabels(labels ?? ""), value: readValue(value) });
  }
  return found;
}

function readLabels(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(LABEL)].map(([, name = "", value = ""]) => [name, unescaped(value)]),
  );
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => char === "n" ? "\n" : char);
}

/** NaN for what is no number. */
function readValue(text: string): number {
  if (/^[+-]?Inf$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return text === "" ? NaN : Number(text);
}
