/** What scheduling and admission tell Prometheus: queues, saturation, caches, and engines' own words. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Band } from "../../core/admission/band.ts";
import type { EngineSample } from "../../core/load/engine_sample.ts";

export interface SchedulingPresent {
  /** Requests that wait for room. */
  queued(): readonly {
    readonly model: string;
    readonly band: Band;
    readonly requests: number;
    readonly bytes: number;
  }[];
  saturations(): readonly { readonly model: string; readonly saturation: number }[];
  /** Prompt tokens that caches were thought to have, and had, since the start. */
  cached(): { readonly expected: number; readonly found: number };
  replicas(): readonly ReplicaLoadPresent[];
}

export interface ReplicaLoadPresent {
  readonly replicaId: string;
  readonly reservedTokens: number;
  readonly capacity: number;
  /** Which engine it is: "vllm", "llamacpp" and so on. */
  readonly engineName: string;
  readonly engine: { readonly sample: EngineSample; readonly ageMs: number } | undefined;
  readonly prefixBlocks: number;
  readonly prefixTrust: number;
}

const WAIT_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Registers them; what is returned tells how long a request waited. */
export function registerScheduling(
  registry: Registry,
  present: SchedulingPresent,
): (model: string, band: Band, ms: number) => void {
  const registers = [registry];
  const waits = new Histogram({
    name: "heddle_router_queue_seconds",
    help: "Time that requests waited for room at a replica.",
    labelNames: ["model", "band"],
    buckets: WAIT_BUCKETS,
    registers,
  });
  registerQueues(registry, present);
  registerReplicas(registry, present);
  registerEngines(registry, present);
  new Counter({
    name: "heddle_router_prefix_tokens_total",
    help: "Prompt tokens in engines' caches: expected by the router, and found by the engine.",
    labelNames: ["kind"],
    registers,
    collect() {
      const { expected, found } = present.cached();
      this.reset();
      this.inc({ kind: "expected" }, expected);
      this.inc({ kind: "found" }, found);
    },
  });
  return (model, band, ms) => waits.observe({ model, band }, ms / 1_000);
}

function registerQueues(registry: Registry, present: SchedulingPresent): void {
  const gauge = gauges(registry);
  gauge("heddle_router_queued_requests", "Requests waiting for room.", ["model", "band"], (g) => {
    for (const { model, band, requests } of present.queued()) g.set({ model, band }, requests);
  });
  gauge("heddle_router_queued_bytes", "Bytes of their bodies.", ["model", "band"], (g) => {
    for (const { model, band, bytes } of present.queued()) g.set({ model, band }, bytes);
  });
  gauge(
    "heddle_router_saturation_ratio",
    "How full a model's replicas are: 1 lets nobody in.",
    ["model"],
    (g) => {
      for (const { model, saturation } of present.saturations()) g.set({ model }, saturation);
    },
  );
}

function registerReplicas(registry: Registry, present: SchedulingPresent): void {
  const gauge = gauges(registry);
  const perReplica = (
    name: string,
    help: string,
    read: (replica: ReplicaLoadPresent) => number,
  ) =>
    gauge(name, help, ["replica"], (g) => {
      for (const replica of present.replicas()) {
        g.set({ replica: replica.replicaId }, read(replica));
      }
    });
  perReplica(
    "heddle_router_replica_capacity",
    "Requests at which a replica is full.",
    (r) => r.capacity,
  );
  perReplica(
    "heddle_router_replica_reserved_tokens",
    "Tokens of this router's requests.",
    (r) => r.reservedTokens,
  );
  perReplica(
    "heddle_router_prefix_blocks",
    "Prompt blocks a replica is thought to have.",
    (r) => r.prefixBlocks,
  );
  perReplica(
    "heddle_router_prefix_trust",
    "Part of expected blocks that was there.",
    (r) => r.prefixTrust,
  );
}

/** What engines say of themselves, under one name whatever they call it. */
function registerEngines(registry: Registry, present: SchedulingPresent): void {
  const gauge = gauges(registry);
  const perEngine = (
    name: string,
    help: string,
    read: (engine: NonNullable<ReplicaLoadPresent["engine"]>) => number | undefined,
  ) =>
    gauge(name, help, ["replica", "engine"], (g) => {
      for (const { replicaId: replica, engineName, engine } of present.replicas()) {
        // What an engine does not say is not there: a zero would be a lie.
        const value = engine && read(engine);
        if (value !== undefined) g.set({ replica, engine: engineName }, value);
      }
    });
  const said = "As the engine said last.";
  perEngine("heddle_engine_requests_running", said, ({ sample }) => sample.running);
  perEngine("heddle_engine_requests_waiting", said, ({ sample }) => sample.waiting);
  perEngine("heddle_engine_kv_cache_usage_ratio", said, ({ sample }) => sample.kvUsage);
  perEngine(
    "heddle_engine_sample_age_seconds",
    "Since the engine said its load.",
    ({ ageMs }) => ageMs / 1_000,
  );
}

type Read = (gauge: Gauge) => void;

function gauges(registry: Registry) {
  return (name: string, help: string, labelNames: readonly string[], read: Read) =>
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect() {
        this.reset();
        read(this);
      },
    });
}
