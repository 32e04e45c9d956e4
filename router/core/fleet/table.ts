/**
 * The routing table: an immutable value, folded from what control says and never edited in place,
 * so that a request that holds one sees the same fleet from its first stage to its last.
 *
 * A snapshot replaces everything, with one exception. A control that has just started does not know
 * yet what runs on nodes that have not registered with it. What it leaves out there is not gone, it
 * is unconfirmed: such an endpoint stays, and goes when control says so, or when its node has
 * settled without it.
 */
import { compareRevisions, NO_REVISION, type Revision } from "@heddle/proto/revision";
import type { Endpoint, Model } from "./endpoint.ts";

/** What one message of the Watch stream changes. */
export interface TableUpdate {
  readonly revision: Revision;
  /** A chunk of a snapshot: it takes effect once a chunk with `snapshotEnd` has come. */
  readonly snapshot: boolean;
  readonly snapshotEnd: boolean;
  readonly models: readonly Model[];
  readonly removedModels: readonly string[];
  readonly endpoints: readonly Endpoint[];
  readonly removedReplicas: readonly string[];
  readonly settledNodes: readonly string[];
  readonly settled: boolean;
}

export interface Table {
  readonly revision: Revision;
  readonly models: ReadonlyMap<string, Model>;
  /** By replica id. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  /** Replica ids that the last snapshot left out although their node had not settled. */
  readonly unconfirmed: ReadonlySet<string>;
  readonly settledNodes: ReadonlySet<string>;
  readonly settled: boolean;
  /** Every name and alias to the name of its model. */
  readonly names: ReadonlyMap<string, string>;
  /** By model name, in the order of replica ids. */
  readonly byModel: ReadonlyMap<string, readonly Endpoint[]>;
}

/** A table in the making: the one in force, and the chunks of a snapshot that is still arriving. */
export interface TableFold {
  readonly table: Table;
  readonly pending: readonly TableUpdate[];
}

export const EMPTY_TABLE: Table = indexed({
  revision: NO_REVISION,
  models: new Map(),
  endpoints: new Map(),
  unconfirmed: new Set(),
  settledNodes: new Set(),
  settled: false,
});

/** Applies one message. Pure: the result shares what did not change. */
export function apply(fold: TableFold, update: TableUpdate): TableFold {
  if (!update.snapshot) return { table: applyDelta(fold.table, update), pending: [] };
  const pending = [...fold.pending, update];
  if (!update.snapshotEnd) return { table: fold.table, pending };
  return { table: applySnapshot(fold.table, pending), pending: [] };
}

/** True when `update` begins or continues something older than what is in force. */
export function isStale(table: Table, update: TableUpdate): boolean {
  return compareRevisions(update.revision, table.revision) < 0;
}

/** Puts `extra`'s models and endpoints beside `table`'s; where both have one, `extra`'s counts. */
export function overlay(table: Table, extra: Table): Table {
  if (extra.models.size === 0) return table;
  return indexed({
    ...table,
    models: new Map([...table.models, ...mergedModels(table, extra)]),
    endpoints: new Map([...table.endpoints, ...extra.endpoints]),
  });
}

function applySnapshot(old: Table, chunks: readonly TableUpdate[]): Table {
  const last = chunks.at(-1);
  if (last === undefined) return old;
  const models = new Map(chunks.flatMap((c) => c.models).map((m) => [m.name, m]));
  const endpoints = new Map(chunks.flatMap((c) => c.endpoints).map((e) => [e.replicaId, e]));
  const settledNodes = new Set(chunks.flatMap((c) => c.settledNodes));
  const settled = chunks.some((c) => c.settled);
  const removed = new Set(chunks.flatMap((c) => c.removedReplicas));
  const unconfirmed = new Set<string>();
  for (const [id, endpoint] of old.endpoints) {
    if (endpoints.has(id) || removed.has(id)) continue;
    if (settled || settledNodes.has(endpoint.node)) continue;
    const model = models.get(endpoint.model) ?? old.models.get(endpoint.model);
    if (model === undefined) continue;
    models.set(model.name, model);
    endpoints.set(id, endpoint);
    unconfirmed.add(id);
  }
  return indexed({
    revision: last.revision,
    models,
    endpoints,
    unconfirmed,
    settledNodes,
    settled,
  });
}

function applyDelta(old: Table, update: TableUpdate): Table {
  const models = new Map(old.models);
  for (const model of update.models) models.set(model.name, model);
  const endpoints = new Map(old.endpoints);
  const unconfirmed = new Set(old.unconfirmed);
  for (const endpoint of update.endpoints) {
    endpoints.set(endpoint.replicaId, endpoint);
    unconfirmed.delete(endpoint.replicaId);
  }
  for (const id of update.removedReplicas) {
    endpoints.delete(id);
    unconfirmed.delete(id);
  }
  for (const name of update.removedModels) models.delete(name);
  const settledNodes = new Set([...old.settledNodes, ...update.settledNodes]);
  const settled = old.settled || update.settled;
  for (const id of unconfirmed) {
    const node = endpoints.get(id)?.node ?? "";
    if (!settled && !settledNodes.has(node)) continue;
    endpoints.delete(id);
    unconfirmed.delete(id);
  }
  return indexed({
    revision: update.revision,
    models,
    endpoints,
    unconfirmed,
    settledNodes,
    settled,
  });
}

// A model that both know keeps control's aliases and gains the extra ones: the static endpoints
// are more room for it, not another model.
function mergedModels(table: Table, extra: Table): [string, Model][] {
  return [...extra.models].map(([name, model]) => {
    const known = table.models.get(name);
    if (known === undefined) return [name, model];
    return [name, {
      ...known,
      aliases: [...new Set([...known.aliases, ...model.aliases])],
      fallbacks: known.fallbacks.length > 0 ? known.fallbacks : model.fallbacks,
    }];
  });
}

function indexed(parts: Omit<Table, "names" | "byModel">): Table {
  const names = new Map<string, string>();
  for (const model of parts.models.values()) {
    for (const alias of model.aliases) names.set(alias, model.name);
  }
  // A name beats an alias of the same spelling.
  for (const name of parts.models.keys()) names.set(name, name);
  const byModel = new Map<string, Endpoint[]>();
  for (const endpoint of parts.endpoints.values()) {
    const list = byModel.get(endpoint.model);
    if (list === undefined) byModel.set(endpoint.model, [endpoint]);
    else list.push(endpoint);
  }
  for (const list of byModel.values()) list.sort(byReplicaId);
  return { ...parts, names, byModel };
}

function byReplicaId(a: Endpoint, b: Endpoint): number {
  return a.replicaId < b.replicaId ? -1 : a.replicaId > b.replicaId ? 1 : 0;
}
