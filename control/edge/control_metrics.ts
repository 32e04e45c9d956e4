/** What control measures of itself and of the fleet. Gauges are read from the world at a scrape. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { replicaWord } from "../core/views/replicas.ts";
import type { ReplicaView } from "../core/views.ts";
import type { CatalogFileState } from "./catalog_watch.ts";

/** What the gauges are read from. */
export interface MetricSources {
  readonly nodes: () => readonly { readonly state: string }[];
  readonly replicas: () => readonly Pick<ReplicaView, "model" | "state" | "shards">[];
  /** Engines that something else started. */
  readonly attached: () => readonly { readonly attached?: { readonly state: string } }[];
  readonly models: () => readonly {
    readonly name: string;
    readonly unsafeProfiles: readonly string[];
    readonly desiredReplicas: number;
    readonly failedStarts: number;
  }[];
  /** Operators' decisions that hold. */
  readonly decisions: () => readonly { readonly kind: string }[];
  readonly term: () => number;
  readonly settled: () => boolean;
  readonly catalogRevision: () => number;
  readonly agentStreams: () => number;
  readonly watchClients: () => number;
  readonly logReaders: () => number;
  readonly consoles: () => number;
  /** False while this control stands by. */
  readonly leading: () => boolean;
  readonly storeAway: () => boolean;
  /** Keys that are kept, revoked ones included. */
  readonly keys: () => number;
  /** Limits of which routers hold shares. */
  readonly sharedLimits: () => number;
}

/** What is counted when it happens. */
export interface ControlMetrics {
  /** One pass of the loop. `rules` are those that its plan would have broken. */
  pass(durationMs: number, rules: readonly string[]): void;
  loopFailed(): void;
  storeFailed(): void;
  catalogState(state: CatalogFileState): void;
  /** Records of usage that came from routers. */
  recorded(result: RecordResult, count: number): void;
  /** Control had a node remove weights that nobody asks for. */
  weightsRemoved(reason: "disk_pressure" | "room_for_model", bytes: number): void;
}

/** What became of records: written, there already, or dropped because they could count twice. */
export type RecordResult = "new" | "duplicate" | "refused";

const FILE_STATES: readonly CatalogFileState[] = [
  "applied",
  "superseded",
  "waiting",
  "invalid",
  "unreadable",
];

const UNWELL = ["suspected", "degraded"] as const;

/** Registers everything on `registry`. */
export function controlMetrics(registry: Registry, sources: MetricSources): ControlMetrics {
  const registers = [registry];
  registerGauges(registry, sources);
  const durations = new Histogram({
    name: "heddle_control_reconcile_duration_seconds",
    help: "Time to decide and to hand out what was decided, per pass.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers,
  });
  const violations = new Counter({
    name: "heddle_control_plan_violations_total",
    help: "Rules that a plan would have broken; such a plan is dropped whole.",
    labelNames: ["rule"],
    registers,
  });
  const loopErrors = new Counter({
    name: "heddle_control_loop_errors_total",
    help: "Actions, publications and passes that failed and are tried again.",
    registers,
  });
  const storeErrors = new Counter({
    name: "heddle_control_store_errors_total",
    help: "Writes that the store refused.",
    registers,
  });
  const fileStates = new Gauge({
    name: "heddle_control_catalog_file",
    help:
      "1 for how the catalog's file stands: applied, superseded, waiting, invalid or unreadable.",
    labelNames: ["state"],
    registers,
  });
  const records = new Counter({
    name: "heddle_control_usage_records_total",
    help: "Records of usage from routers: new, duplicate, or refused for want of an id.",
    labelNames: ["result"],
    registers,
  });
  const removals = removalCounters(registry);
  return {
    weightsRemoved(reason, bytes) {
      removals.count.inc({ reason });
      removals.bytes.inc({ reason }, bytes);
    },
    recorded: (result, count) => records.inc({ result }, count),
    pass(durationMs, rules) {
      durations.observe(durationMs / 1_000);
      for (const rule of rules) violations.inc({ rule });
    },
    loopFailed: () => loopErrors.inc(),
    storeFailed: () => storeErrors.inc(),
    catalogState(state) {
      for (const each of FILE_STATES) {
        fileStates.set({ state: each }, Number(each === state));
      }
    },
  };
}

function removalCounters(registry: Registry) {
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: ["reason"], registers: [registry] });
  return {
    count: counter(
      "heddle_control_weights_removed_total",
      "Folders of weights that control had nodes remove, by why.",
    ),
    bytes: counter(
      "heddle_control_weights_removed_bytes_total",
      "Bytes that this freed.",
    ),
  };
}

function registerGauges(registry: Registry, sources: MetricSources): void {
  const plain = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `heddle_control_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  plain("term", "The term in which this control decides.", sources.term);
  plain("settled", "1 once control has judged every known node.", () => Number(sources.settled()));
  plain("catalog_revision", "Applied catalogs so far.", sources.catalogRevision);
  plain("agent_streams", "Nodes that are connected.", sources.agentStreams);
  plain("watch_clients", "Routers that watch.", sources.watchClients);
  plain("log_readers", "Operators that read logs.", sources.logReaders);
  plain("consoles", "Consoles that are open.", sources.consoles);
  plain(
    "leading",
    "1 while this control leads, 0 while it stands by.",
    () => Number(sources.leading()),
  );
  plain("store_away", "1 while the store does not answer.", () => Number(sources.storeAway()));
  plain("keys", "Keys that are kept, revoked ones included.", sources.keys);
  plain("shared_limits", "Limits of which routers hold shares.", sources.sharedLimits);
  plain(
    "unsafe_profiles",
    "Profiles of the catalog that say unsafe_env.",
    () => sources.models().reduce((sum, model) => sum + model.unsafeProfiles.length, 0),
  );
  registerFleet(registry, sources);
  registerUnwell(registry, sources);
  registerAttached(registry, sources);
}

function registerFleet(registry: Registry, sources: MetricSources): void {
  perModel(registry, {
    name: "heddle_control_replicas_wanted",
    help: "Replicas that each model should have.",
    read: () => sources.models().map(({ name, desiredReplicas }) => [name, desiredReplicas]),
  });
  perModel(registry, {
    name: "heddle_control_failed_starts",
    help: "Starts of each model that failed since its last success.",
    read: () => sources.models().map(({ name, failedStarts }) => [name, failedStarts]),
  });
  new Gauge({
    name: "heddle_control_decisions",
    help: "Operators' decisions that hold, by kind.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { kind } of sources.decisions()) this.inc({ kind });
    },
  });
  new Gauge({
    name: "heddle_control_nodes",
    help: "Known nodes by state.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { state } of sources.nodes()) this.inc({ state });
    },
  });
  new Gauge({
    name: "heddle_control_replicas",
    help: "Replicas by model and state.",
    labelNames: ["model", "state"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { model, state } of sources.replicas()) this.inc({ model, state });
    },
  });
}

/** Of those that count as ready; a model of which all are well has zeros, so that an alert ends. */
function registerUnwell(registry: Registry, { models, replicas }: MetricSources): void {
  new Gauge({
    name: "heddle_control_replicas_unwell",
    help: "Ready replicas that may hang (suspected), or of which a part is not well (degraded).",
    labelNames: ["model", "state"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name: model } of models()) {
        for (const state of UNWELL) this.set({ model, state }, 0);
      }
      for (const replica of replicas()) {
        const state = UNWELL.find((word) => word === replicaWord(replica));
        if (state !== undefined) this.inc({ model: replica.model, state });
      }
    },
  });
}

function registerAttached(registry: Registry, { attached }: MetricSources): void {
  new Gauge({
    name: "heddle_control_attached_engines",
    help: "Engines that something else started, by state.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { attached: view } of attached()) this.inc({ state: view?.state ?? "unknown" });
    },
  });
}

function perModel(
  registry: Registry,
  { name, help, read }: {
    readonly name: string;
    readonly help: string;
    readonly read: () => readonly (readonly [model: string, value: number])[];
  },
): void {
  new Gauge({
    name,
    help,
    labelNames: ["model"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [model, value] of read()) this.set({ model }, value);
    },
  });
}
