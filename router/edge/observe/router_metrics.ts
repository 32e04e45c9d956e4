/** The router's Prometheus metrics, `heddle_router_*`. Labels take only names that control knows. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { BreakerState } from "../../core/fleet/breaker.ts";
import type { Band } from "../../core/admission/band.ts";
import type { UsageRecord } from "../../core/request/usage_record.ts";
import { QuickHistogram, type Series } from "./quick_histogram.ts";
import {
  registerScheduling,
  type ReplicaLoadPresent,
  type SchedulingPresent,
} from "./scheduling_metrics.ts";

import { registerTenancy, type TenancyMetrics, type TenancyPresent } from "./tenancy_metrics.ts";

/** What gauges read at each scrape. */
export interface Present extends SchedulingPresent {
  inFlight(): number;
  /** Requests held for models that are asleep. */
  held(): ReadonlyMap<string, number>;
  replicas(): readonly (ReplicaLoadPresent & {
    readonly inFlight: number;
    readonly breaker: BreakerState;
  })[];
  readonly tenancy: () => TenancyPresent;
  connections(): { readonly busy: number; readonly idle: number };
  /** Undefined for a router without control. */
  readonly control: ControlPresent | undefined;
}

export interface ControlPresent {
  /** Milliseconds since control last confirmed the table, or undefined when it never did. */
  ageMs(): number | undefined;
  tooOld(): boolean;
  connected(): boolean;
}

const STAGES = [
  "authenticate",
  "read",
  "parse",
  "resolve",
  "limit",
  "admit",
  "schedule",
  "forward",
] as const;
export type Stage = (typeof STAGES)[number];

const FAST_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120];
const CONTENT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** Replicas with a histogram of their own: some 16 lines each, twice. */
const SERIES_MAX = 1_000;
/** What the others are called; no replica's id has parentheses. */
const OTHER_REPLICAS = "(other)";
const BREAKER_STATES: readonly BreakerState[] = ["closed", "open", "half_open"];

/** Who gave an answer. */
export interface Server {
  readonly model: string;
  readonly replica: string;
}

export interface RouterMetrics extends TenancyMetrics {
  /** A stage took so long. */
  stage(stage: Stage, ms: number): void;
  /** The first content of a stream or document went out. */
  firstContent(from: Server, ms: number): void;
  /** Time between two pieces of content of one stream. */
  contentGap(from: Server, ms: number): void;
  /** A request waited so long for room. */
  waited(model: string, band: Band, ms: number): void;
  /** A try did not serve, for this reason. */
  failedTry(model: string, reason: string): void;
  record(record: UsageRecord): void;
}

export function routerMetrics(registry: Registry, present: Present): RouterMetrics {
  const registers = [registry];
  registerGauges(registry, present);
  const waits = registerScheduling(registry, present);
  const requests = new Counter({
    name: "heddle_router_requests_total",
    help: "Requests to engines, by how they ended.",
    labelNames: ["model", "route", "outcome"],
    registers,
  });
  const duration = requestHistogram(registry);
  const replicas = () => present.replicas().map(({ replicaId }) => replicaId);
  const first = replicaHistogram(registry, replicas, {
    name: "heddle_router_first_content_seconds",
    help: "Time from a request's arrival to the first content sent to the client.",
  });
  const gap = replicaHistogram(registry, replicas, {
    name: "heddle_router_content_gap_seconds",
    help: "Time between two pieces of content of one stream.",
  });
  const failed = new Counter({
    name: "heddle_router_failed_tries_total",
    help: "Tries at a replica that did not serve; the request may have been served by another.",
    labelNames: ["model", "reason"],
    registers,
  });
  const tokens = new Counter({
    name: "heddle_router_tokens_total",
    help: "Tokens as engines count them, or as estimated where they do not.",
    labelNames: ["model", "kind"],
    registers,
  });
  const stage = stageHistogram(registry);
  return {
    ...registerTenancy(registry, present.tenancy),
    stage,
    firstContent: first,
    contentGap: gap,
    waited: waits,
    failedTry: (model, reason) => failed.inc({ model, reason }),
    record: ({ model, route, outcome, usage, durationMs }) => {
      requests.inc({ model, route, outcome });
      duration(model, route, durationMs);
      if (usage === undefined) return;
      tokens.inc({ model, kind: "prompt" }, usage.promptTokens);
      tokens.inc({ model, kind: "completion" }, usage.completionTokens);
    },
  };
}

/**
 * A histogram by model and replica. Replicas come and go for as long as a router runs, so at each
 * scrape those that are gone lose their series, and of too many at once the rest is one.
 */
function replicaHistogram(
  registry: Registry,
  replicas: () => readonly string[],
  names: { readonly name: string; readonly help: string },
): (from: Server, ms: number) => void {
  const seen = new Map<string, { readonly replica: string; readonly series: Series }>();
  const histogram = new QuickHistogram({
    ...names,
    labelNames: ["model", "replica"],
    buckets: CONTENT_BUCKETS,
    registry,
    beforeScrape() {
      const there = new Set(replicas());
      for (const [key, { replica, series }] of seen) {
        if (there.has(replica) || replica === OTHER_REPLICAS) continue;
        histogram.drop(series);
        seen.delete(key);
      }
    },
  });
  const seriesOf = (model: string, replica: string): Series => {
    const key = `${model} ${replica}`;
    const known = seen.get(key);
    if (known !== undefined) return known.series;
    if (seen.size >= SERIES_MAX && replica !== OTHER_REPLICAS) {
      return seriesOf(model, OTHER_REPLICAS);
    }
    const series = histogram.series({ model, replica });
    seen.set(key, { replica, series });
    return series;
  };
  return ({ model, replica }, ms) => seriesOf(model, replica).observe(ms / 1_000);
}

function stageHistogram(registry: Registry): RouterMetrics["stage"] {
  const histogram = new QuickHistogram({
    name: "heddle_router_stage_seconds",
    help: "Time that each stage of a request took.",
    labelNames: ["stage"],
    buckets: FAST_BUCKETS,
    registry,
  });
  const byStage = new Map(STAGES.map((stage) => [stage, histogram.series({ stage })]));
  return (stage, ms) => byStage.get(stage)?.observe(ms / 1_000);
}

function requestHistogram(registry: Registry) {
  const histogram = new QuickHistogram({
    name: "heddle_router_request_seconds",
    help: "Time from a request's arrival to its end.",
    labelNames: ["model", "route"],
    buckets: CONTENT_BUCKETS,
    registry,
  });
  const byLabels = new Map<string, Series>();
  return (model: string, route: string, ms: number): void => {
    const key = `${model} ${route}`;
    const series = byLabels.get(key) ?? histogram.series({ model, route });
    byLabels.set(key, series);
    series.observe(ms / 1_000);
  };
}

function registerGauges(registry: Registry, present: Present): void {
  const gauge = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: (gauge: Gauge) => void,
  ) =>
    new Gauge({
      name: `heddle_router_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect() {
        this.reset();
        read(this);
      },
    });
  gauge("requests_in_flight", "Requests admitted and not ended.", [], (g) => {
    g.set(present.inFlight());
  });
  gauge("requests_waiting", "Requests held until a model has started.", ["model"], (g) => {
    for (const [model, count] of present.held()) g.set({ model }, count);
  });
  gauge("replica_in_flight", "Requests of this router at a replica.", ["replica"], (g) => {
    for (const { replicaId, inFlight } of present.replicas()) {
      g.set({ replica: replicaId }, inFlight);
    }
  });
  gauge("breaker_state", "1 for the state the breaker is in.", ["replica", "state"], (g) => {
    for (const { replicaId, breaker } of present.replicas()) {
      for (const state of BREAKER_STATES) {
        g.set({ replica: replicaId, state }, state === breaker ? 1 : 0);
      }
    }
  });
  gauge("engine_connections", "Open connections to engines.", ["state"], (g) => {
    const { busy, idle } = present.connections();
    g.set({ state: "busy" }, busy);
    g.set({ state: "idle" }, idle);
  });
  const { control } = present;
  if (control === undefined) return;
  gauge("snapshot_age_seconds", "Time since control last confirmed the table.", [], (g) => {
    g.set((control.ageMs() ?? NaN) / 1_000);
  });
  gauge("snapshot_too_old", "1 when the snapshot is older than the warning allows.", [], (g) => {
    g.set(control.tooOld() ? 1 : 0);
  });
  gauge("watch_connected", "1 while control's stream is open.", [], (g) => {
    g.set(control.connected() ? 1 : 0);
  });
}
