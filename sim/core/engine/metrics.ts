/** Counters, gauges and histograms with labels, and their Prometheus text. Pure: a value that is added to. */

export type Labels = Readonly<Record<string, string>>;

type Kind = "counter" | "gauge" | "histogram";

interface Series {
  readonly labels: Labels;
  value: number;
  /** Cumulative only when rendered; here each bucket counts its own range. */
  readonly buckets: number[];
  count: number;
}

/** One metric family. */
export class Metric {
  readonly #name: string;
  readonly #kind: Kind;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(
    options: { name: string; kind: Kind; help: string; bounds?: readonly number[] },
  ) {
    this.#name = options.name;
    this.#kind = options.kind;
    this.#help = options.help;
    this.#bounds = options.bounds ?? [];
  }

  /** Adds to a counter; also makes the series exist, with 0. */
  add(labels: Labels, value: number): void {
    this.#at(labels).value += value;
  }

  /** A counter's or gauge's value; a histogram's sum. */
  read(labels: Labels): number {
    return this.#at(labels).value;
  }

  set(labels: Labels, value: number): void {
    this.#at(labels).value = value;
  }

  observe(labels: Labels, value: number): void {
    const series = this.#at(labels);
    series.value += value;
    series.count += 1;
    const index = this.#bounds.findIndex((bound) => value <= bound);
    const bucket = index === -1 ? this.#bounds.length : index;
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  }

  render(): string {
    const name = this.#kind === "counter" ? `${this.#name}_total` : this.#name;
    const lines = [`# HELP ${name} ${this.#help}`, `# TYPE ${name} ${this.#kind}`];
    for (const series of this.#series.values()) {
      if (this.#kind === "histogram") lines.push(...this.#renderHistogram(series));
      else lines.push(`${name}${renderLabels(series.labels)} ${renderNumber(series.value)}`);
    }
    return lines.join("\n") + "\n";
  }

  #renderHistogram(series: Series): string[] {
    const lines: string[] = [];
    let cumulative = 0;
    for (const [index, bound] of [...this.#bounds, Infinity].entries()) {
      cumulative += series.buckets[index] ?? 0;
      const le = bound === Infinity ? "+Inf" : renderNumber(bound);
      lines.push(`${this.#name}_bucket${renderLabels({ le, ...series.labels })} ${cumulative}.0`);
    }
    const labels = renderLabels(series.labels);
    lines.push(`${this.#name}_count${labels} ${series.count}.0`);
    lines.push(`${this.#name}_sum${labels} ${renderNumber(series.value)}`);
    return lines;
  }

  #at(labels: Labels): Series {
    // The engine's own labels are few and always given in one order, so their values are a key.
    const key = Object.values(labels).join("\u0000");
    let series = this.#series.get(key);
    if (series === undefined) {
      const buckets = this.#kind === "histogram"
        ? new Array<number>(this.#bounds.length + 1).fill(0)
        : [];
      series = { labels, value: 0, buckets, count: 0 };
      this.#series.set(key, series);
    }
    return series;
  }
}

/** As Prometheus' Python client writes floats, which is what parsers of vLLM's metrics have seen. */
function renderNumber(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

function renderLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
