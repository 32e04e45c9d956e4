/** One screen of what is going on: the busiest models, nodes and replicas. Pure. */
import type { ModelView, NodeView, ReplicaView } from "@heddle/proto/gen/admin";
import type { BandQueue, ModelTraffic } from "@heddle/proto/gen/live";
import { decodeNodeState } from "@heddle/proto/node_state";
import { degradation, replicaWord, suspicion } from "../status/degradation.ts";
import { type Column, formatTable, visible } from "../table.ts";
import { loadWords, memoryWords } from "../commands/nodes/load.ts";

export interface Moment {
  readonly cluster: string;
  readonly models: readonly ModelView[];
  readonly nodes: readonly NodeView[];
  readonly replicas: readonly ReplicaView[];
  readonly traffic: readonly ModelTraffic[];
  /** Over all models; undefined before control's first sample. */
  readonly all: ModelTraffic | undefined;
}

/** Lines that are no rows: the head, and of each table its title and the empty line before it. */
const FRAME_LINES = 8;

/** Of what is left for rows: models, nodes, replicas. */
const SHARES = { models: 0.4, nodes: 0.3, replicas: 0.3 } as const;

interface ModelRow {
  readonly model: ModelView;
  readonly traffic: ModelTraffic | undefined;
}

const MODEL_COLUMNS: readonly Column<ModelRow>[] = [
  { title: "MODEL", cell: ({ model }) => model.name },
  { title: "READY", cell: ({ model }) => `${model.readyReplicas}/${model.desiredReplicas}` },
  { title: "REQ/S", cell: ({ traffic }) => rate(traffic?.requestsPerSecond) },
  { title: "FAIL/S", cell: ({ traffic }) => rate(traffic?.failuresPerSecond) },
  { title: "LATE/S", cell: ({ traffic }) => rate(traffic?.sloMissesPerSecond) },
  { title: "IN FLIGHT", cell: ({ traffic }) => String(traffic?.inFlight ?? 0) },
  { title: "WAITING", cell: ({ traffic }) => String(traffic?.waiting ?? 0) },
  { title: "QUEUE BY BAND", cell: ({ traffic }) => queueWords(traffic?.queue) },
  { title: "TTFT P99", cell: ({ traffic }) => milliseconds(traffic?.ttftP99Ms) },
  { title: "CACHED", cell: ({ traffic }) => percent(traffic?.cacheHitShare) },
];

const NODE_COLUMNS: readonly Column<NodeView>[] = [
  { title: "NODE", cell: ({ name }) => name },
  { title: "STATE", cell: ({ state }) => decodeNodeState(state) },
  { title: "GPUS USED", cell: gpusUsed },
  { title: "GPU", cell: gpuBusy },
  { title: "LOAD", cell: loadWords },
  { title: "MEMORY FREE", cell: memoryWords },
];

const REPLICA_COLUMNS: readonly Column<ReplicaView>[] = [
  { title: "REPLICA", cell: ({ replicaId }) => replicaId },
  { title: "STATE", cell: replicaWord },
  { title: "NODES", cell: ({ shards }) => shards.map(({ node }) => node).join(", ") },
  { title: "IN FLIGHT", cell: ({ inFlight }) => inFlight === undefined ? "" : String(inFlight) },
];

const notWell = (replica: ReplicaView) => degradation(replica) || suspicion(replica);

/** Only where a replica is not well, or may not be: it is the widest of all. */
const REASON_COLUMN: Column<ReplicaView> = { title: "REASON", cell: notWell };

/** `lines`: how high the screen is; the most that is written. */
export function formatTop(moment: Moment, lines: number): string {
  const rows = Math.max(3, lines - FRAME_LINES);
  const models = busiestModels(moment);
  const nodes = moment.nodes.toSorted((a, b) =>
    gpuPercent(b) - gpuPercent(a) || load(b) - load(a) || order(a.name, b.name)
  );
  const replicas = moment.replicas.toSorted((a, b) =>
    (b.inFlight ?? -1) - (a.inFlight ?? -1) || order(a.replicaId, b.replicaId)
  );
  const anyReason = replicas.some((replica) => notWell(replica) !== "");
  const shown = sharesOf(rows, {
    models: models.length,
    nodes: nodes.length,
    replicas: replicas.length,
  });
  return [
    `${head(moment)}\n`,
    table(MODEL_COLUMNS, models, shown.models),
    table(NODE_COLUMNS, nodes, shown.nodes),
    table(
      anyReason ? [...REPLICA_COLUMNS, REASON_COLUMN] : REPLICA_COLUMNS,
      replicas,
      shown.replicas,
    ),
  ].join("\n");
}

/** What machines get of it, in the same order. */
export function topRecord(moment: Moment) {
  const { cluster, all } = moment;
  return {
    cluster,
    requests_per_second: all?.requestsPerSecond ?? null,
    failures_per_second: all?.failuresPerSecond ?? null,
    slo_misses_per_second: all?.sloMissesPerSecond ?? null,
    in_flight: all?.inFlight ?? null,
    waiting: all?.waiting ?? null,
    ...measuredOf(all),
    models: busiestModels(moment).map(({ model, traffic }) => ({
      model: model.name,
      ready_replicas: model.readyReplicas,
      desired_replicas: model.desiredReplicas,
      requests_per_second: traffic?.requestsPerSecond ?? null,
      failures_per_second: traffic?.failuresPerSecond ?? null,
      slo_misses_per_second: traffic?.sloMissesPerSecond ?? null,
      in_flight: traffic?.inFlight ?? null,
      waiting: traffic?.waiting ?? null,
      ...measuredOf(traffic),
    })),
    nodes: moment.nodes.map((node) => ({
      node: node.name,
      state: decodeNodeState(node.state),
      gpus: node.inventory?.gpus.length ?? 0,
      gpus_used: node.usedGpus.length,
      gpu_percent: gpuPercent(node) < 0 ? null : gpuPercent(node),
      load_1m: node.inventory?.load?.load1m ?? null,
    })),
    replicas: moment.replicas.map((replica) => ({
      replica_id: replica.replicaId,
      model: replica.model,
      state: replicaWord(replica),
      reason: notWell(replica),
      in_flight: replica.inFlight ?? null,
    })),
  };
}

const BANDS = ["platinum", "gold", "silver", "bronze"] as const;

/** "gold 3, bronze 12": bands without a queue are left out; empty where nobody waits or it is unknown. */
function queueWords(queue: BandQueue | undefined): string {
  return BANDS.filter((band) => (queue?.[band] ?? 0) > 0)
    .map((band) => `${band} ${queue?.[band]}`).join(", ");
}

function measuredOf(traffic: ModelTraffic | undefined) {
  return {
    ttft_p50_ms: traffic?.ttftP50Ms ?? null,
    ttft_p99_ms: traffic?.ttftP99Ms ?? null,
    cache_hit_share: traffic?.cacheHitShare ?? null,
    queue: traffic?.queue === undefined
      ? null
      : Object.fromEntries(BANDS.map((band) => [band, traffic.queue?.[band] ?? 0])),
  };
}

function head({ cluster, all, nodes }: Moment): string {
  const gpus = nodes.reduce((sum, { inventory }) => sum + (inventory?.gpus.length ?? 0), 0);
  const used = nodes.reduce((sum, { usedGpus }) => sum + usedGpus.length, 0);
  const traffic = all === undefined
    ? "no sample of traffic yet"
    : `${rate(all.requestsPerSecond)} requests a second, ${rate(all.failuresPerSecond)} fail, ${
      rate(all.sloMissesPerSecond)
    } late; ${all.inFlight} in flight, ${all.waiting} waiting${
      queueWords(all.queue) === "" ? "" : ` (${queueWords(all.queue)})`
    }`;
  return `${visible(cluster)}: ${traffic}; ${used} of ${gpus} GPUs used`;
}

function busiestModels({ models, traffic }: Moment): readonly ModelRow[] {
  const byName = new Map(traffic.map((each) => [each.model, each]));
  const busy = ({ traffic }: ModelRow) =>
    (traffic?.requestsPerSecond ?? 0) * 1_000 + (traffic?.inFlight ?? 0) + (traffic?.waiting ?? 0);
  return models.map((model) => ({ model, traffic: byName.get(model.name) }))
    .sort((a, b) => busy(b) - busy(a) || order(a.model.name, b.model.name));
}

type Counts = Readonly<Record<keyof typeof SHARES, number>>;

/** What one table does not need, another may have. */
function sharesOf(rows: number, wanted: Counts): Counts {
  const first = (key: keyof Counts) =>
    Math.min(wanted[key], Math.max(1, Math.floor(rows * SHARES[key])));
  const shares = {
    models: first("models"),
    nodes: first("nodes"),
    replicas: first("replicas"),
  };
  let left = rows - shares.models - shares.nodes - shares.replicas;
  for (const key of ["models", "nodes", "replicas"] as const) {
    const more = Math.max(0, Math.min(left, wanted[key] - shares[key]));
    shares[key] += more;
    left -= more;
  }
  return shares;
}

function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], shown: number): string {
  const listing = { rows: rows.slice(0, shown), columns, empty: "" };
  const more = rows.length > shown ? [`… and ${rows.length - shown} more`] : [];
  const lines = formatTable(listing, { aligned: true, wide: false, heads: true }).trimEnd();
  const [title = "", ...body] = lines.split("\n");
  // The title says how many are not shown, so that no line is lost to it.
  return [[title, ...more].join("  "), ...body].map((line) => `${line}\n`).join("");
}

function gpusUsed({ usedGpus, inventory }: NodeView): string {
  return `${usedGpus.length}/${inventory?.gpus.length ?? 0}`;
}

/** Mean over its GPUs, by their agent's last word; -1 when it says none. */
function gpuPercent({ inventory }: NodeView): number {
  const said = (inventory?.load?.shards ?? []).flatMap(({ gpuUtilizationPercent: percent }) =>
    percent === undefined ? [] : [percent]
  );
  return said.length === 0 ? -1 : said.reduce((sum, each) => sum + each, 0) / said.length;
}

function gpuBusy(node: NodeView): string {
  const percent = gpuPercent(node);
  return percent < 0 ? "" : `${Math.round(percent)} %`;
}

function load({ inventory }: NodeView): number {
  return inventory?.load?.load1m ?? -1;
}

function rate(perSecond: number | undefined): string {
  return perSecond === undefined ? "-" : perSecond === 0 ? "0" : perSecond.toFixed(1);
}

function milliseconds(ms: number | undefined): string {
  return ms === undefined ? "" : `${Math.round(ms)} ms`;
}

function percent(share: number | undefined): string {
  return share === undefined ? "" : `${Math.round(share * 100)} %`;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
