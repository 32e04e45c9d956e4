/**
 * A histogram for what happens many times in each request. prom-client's own makes a text of its
 * labels for every observation, to find its counts by it: a dozen of those cost a request more than
 * choosing its replica. Here whoever observes holds the series, and an observation is an addition.
 */
import { Histogram, type Registry } from "prom-client";

export interface QuickHistogramOptions<T extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly T[];
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
  readonly registry: Registry;
  /** Called before each scrape. */
  readonly beforeScrape?: () => void;
}

/** The observations of one set of labels. */
export class Series {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count++;
    const index = this.#bounds.findIndex((bound) => value <= bound);
    if (index >= 0) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** The lines of the exposition: names by what they end in, labels beside those of the series. */
  lines(): readonly {
    readonly end: string;
    readonly le?: number | "+Inf";
    readonly value: number;
  }[] {
    let below = 0;
    return [
      ...this.#bounds.map((le, index) => {
        below += this.#counts[index] ?? 0;
        return { end: "_bucket", le, value: below };
      }),
      { end: "_bucket", le: "+Inf", value: this.#count },
      { end: "_sum", value: this.#sum },
      { end: "_count", value: this.#count },
    ];
  }
}

export class QuickHistogram<T extends string> extends Histogram<T> {
  readonly #options: QuickHistogramOptions<T>;
  readonly #series = new Map<Series, Readonly<Record<T, string>>>();

  constructor(options: QuickHistogramOptions<T>) {
    const { name, help, labelNames, buckets, registry } = options;
    super({
      name,
      help,
      labelNames: [...labelNames],
      buckets: [...buckets],
      registers: [registry],
    });
    this.#options = options;
  }

  /** A series to observe in: once for each set of labels. */
  series(labels: Readonly<Record<T, string>>): Series {
    const series = new Series(this.#options.buckets);
    this.#series.set(series, labels);
    return series;
  }

  /** It is told no more. */
  drop(series: Series): void {
    this.#series.delete(series);
  }

  /** What the registry asks for at a scrape, and what `get()` is made of. */
  getForPromString() {
    this.#options.beforeScrape?.();
    const { name, help } = this.#options;
    const values = [...this.#series].flatMap(([series, sharedLabels]) =>
      series.lines().map(({ end, le, value }) => ({
        metricName: `${name}${end}`,
        labels: le === undefined ? {} : { le },
        sharedLabels,
        value,
      }))
    );
    return Promise.resolve({ name, help, type: "histogram", aggregator: "sum", values });
  }
}
