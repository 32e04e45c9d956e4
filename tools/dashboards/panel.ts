/** The little of Grafana's dashboard model that ours use. */

/** What a panel's numbers are; Grafana's own names. */
export type Unit =
  | "short"
  | "s"
  | "bytes"
  | "reqps"
  | "percentunit"
  | "celsius"
  | "bps"
  | "none";

export interface Query {
  readonly expr: string;
  /** With {{label}} for a label's value. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** Shown when one points at the title: what is normal, and what to do about the rest. */
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** One number, rather than a line over time. */
  readonly stat?: boolean;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** A value to choose at the top of a dashboard. */
export interface Variable {
  readonly name: string;
  /** All values of `label` on `metric`. */
  readonly metric: string;
  readonly label: string;
}

export interface Dashboard {
  /** Part of its address, so it never changes. */
  readonly uid: string;
  readonly title: string;
  readonly variables: readonly Variable[];
  readonly rows: readonly Row[];
}

/** The value that `part` of all samples stay below, over five minutes. */
export function quantile(part: number, histogram: string, by: string, filter = ""): string {
  return `histogram_quantile(${part}, sum by (le, ${by}) (rate(${histogram}_bucket${filter}[5m])))`;
}

/** The same as one number for all. */
export function quantileOfAll(part: number, histogram: string, filter = ""): string {
  return `histogram_quantile(${part}, sum by (le) (rate(${histogram}_bucket${filter}[5m])))`;
}
