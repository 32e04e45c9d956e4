/** What must survive a restart of control, as the difference that an event made. */
import type { Event, OperatorEvent } from "./event.ts";
import type { StoredMeasurement } from "./capacity/measurement.ts";
import { failureRecords, type FailuresRecord } from "./deciding/failures.ts";
import type { EpochMs, NodeId, ReplicaId } from "./ids.ts";
import type { TenancyRecord } from "./tenancy/stored.ts";
import type {
  CatalogState,
  Decision,
  Decisions,
  NodeDecision,
  ReplicaDecision,
  ScaleDecision,
  Strike,
  World,
} from "./world.ts";

/**
 * One stored fact. The store keeps the newest of each kind and subject; an absent `decision`,
 * `labels` or `failures` removes it. Audit records are only ever added.
 */
export type StoreRecord =
  | { readonly kind: "term"; readonly term: number }
  | { readonly kind: "known_node"; readonly node: NodeId; readonly known: boolean }
  | { readonly kind: "catalog"; readonly text: string; readonly revision: CatalogState["revision"] }
  /** What a control had in its catalog file when it last dealt with it. */
  | { readonly kind: "catalog_file"; readonly control: string; readonly hash: string }
  | { readonly kind: "node_decision"; readonly node: NodeId; readonly decision?: NodeDecision }
  | { readonly kind: "paused"; readonly model: string; readonly decision?: Decision }
  | { readonly kind: "scale"; readonly model: string; readonly decision?: ScaleDecision }
  | {
    readonly kind: "labels";
    readonly node: NodeId;
    readonly labels?: Readonly<Record<string, string>>;
  }
  | {
    readonly kind: "replica_decision";
    readonly replica: ReplicaId;
    readonly decision?: ReplicaDecision;
  }
  | { readonly kind: "strike"; readonly struck: string; readonly decision?: Strike }
  | FailuresRecord
  | TenancyRecord
  | { readonly kind: "measurement"; readonly measurement: StoredMeasurement }
  | Audit;

/** Who decided what, and when. */
export interface Audit {
  readonly kind: "audit";
  readonly at: number;
  readonly by: string;
  /** The operator event's kind, e.g. "cordon", or "apply". */
  readonly action: string;
  /** The node, model or replica it is about, or "catalog". */
  readonly subject: string;
  readonly reason: string;
  /** What it was before and is now, as JSON; absent where the action says it all. */
  readonly before?: string;
  readonly after?: string;
}

/**
 * What `event` made different between two worlds and must be stored before it takes effect. Pure. Of
 * failures that is only what a person has control forget: what happens by itself is stored behind.
 */
export function storeRecords(
  before: World,
  after: World,
  event: Event,
  now: EpochMs,
): readonly StoreRecord[] {
  if (before === after) return [];
  return [
    ...(before.term === after.term ? [] : [{ kind: "term", term: after.term } as const]),
    ...knownRecords(before, after, event),
    ...catalogRecords(before, after),
    ...decisionRecords(before.decisions, after.decisions),
    ...(decides(event) ? failureRecords(before.models, after.models) : []),
    ...auditOf(event, now),
  ];
}

/** An event makes one node known or forgotten at most, and a whole fleet may register at once. */
function knownRecords(before: World, after: World, event: Event): StoreRecord[] {
  if (before.knownNodes === after.knownNodes || !("node" in event)) return [];
  const { node } = event;
  const known = after.knownNodes.has(node);
  return known === before.knownNodes.has(node) ? [] : [{ kind: "known_node", node, known }];
}

function catalogRecords(before: World, after: World): StoreRecord[] {
  if (before.catalog === after.catalog) return [];
  const { text, revision } = after.catalog;
  return [{ kind: "catalog", text, revision }];
}

function decisionRecords(before: Decisions, after: Decisions): StoreRecord[] {
  if (before === after) return [];
  return [
    ...changed(before.nodes, after.nodes).map(([node, decision]): StoreRecord =>
      decision === undefined
        ? { kind: "node_decision", node }
        : { kind: "node_decision", node, decision }
    ),
    ...changed(before.paused, after.paused).map(([model, decision]): StoreRecord =>
      decision === undefined ? { kind: "paused", model } : { kind: "paused", model, decision }
    ),
    ...changed(before.scales, after.scales).map(([model, decision]): StoreRecord =>
      decision === undefined ? { kind: "scale", model } : { kind: "scale", model, decision }
    ),
    ...changed(before.labels, after.labels).map(([node, labels]): StoreRecord =>
      labels === undefined ? { kind: "labels", node } : { kind: "labels", node, labels }
    ),
    ...changed(before.replicas, after.replicas).map(([replica, decision]): StoreRecord =>
      decision === undefined
        ? { kind: "replica_decision", replica }
        : { kind: "replica_decision", replica, decision }
    ),
    ...changed(before.struck, after.struck).map(([struck, decision]): StoreRecord =>
      decision === undefined ? { kind: "strike", struck } : { kind: "strike", struck, decision }
    ),
  ];
}

/** Subjects whose value differs, with the new one; undefined when it is gone. Sorted. */
function changed<V>(
  before: ReadonlyMap<string, V>,
  after: ReadonlyMap<string, V>,
): readonly (readonly [string, V | undefined])[] {
  if (before === after) return [];
  return [...new Set([...before.keys(), ...after.keys()])].sort()
    .filter((subject) => before.get(subject) !== after.get(subject))
    .map((subject) => [subject, after.get(subject)] as const);
}

function auditOf(event: Event, now: EpochMs): StoreRecord[] {
  if (event.kind === "catalog_applied" && event.by !== undefined) {
    const reason = `revision ${event.catalog.revision}`;
    return [{
      kind: "audit",
      at: now,
      by: event.by,
      action: "apply",
      subject: "catalog",
      reason,
    }];
  }
  if (!isOperatorEvent(event)) return [];
  return [{
    kind: "audit",
    at: now,
    by: event.by,
    action: event.kind,
    subject: subjectOf(event),
    reason: detailOf(event),
  }];
}

function subjectOf(event: OperatorEvent): string {
  if ("node" in event) return event.node;
  if ("struck" in event) return event.struck;
  return "model" in event ? event.model : event.replica;
}

/** What was decided, where the action alone does not say it, and why. */
function detailOf(event: OperatorEvent): string {
  switch (event.kind) {
    case "label":
      return [
        ...Object.keys(event.set).sort().map((key) => `${key}=${event.set[key]}`),
        ...event.remove.map((key) => `${key}-`),
      ].join(", ");
    case "scale":
      return [`${event.replicas}`, event.reason].filter((part) => part !== "").join(": ");
    default:
      return "reason" in event ? event.reason : "";
  }
}

function decides(event: Event): boolean {
  return event.kind === "catalog_applied" || isOperatorEvent(event);
}

/** Only what operators decide says who decided it. */
export function isOperatorEvent(event: Event): event is OperatorEvent {
  return "by" in event && event.kind !== "catalog_applied";
}
