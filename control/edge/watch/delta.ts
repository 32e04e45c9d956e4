/**
 * What routers are sent. Pure: a publication becomes a snapshot in chunks, and two publications
 * become the delta between them. A router that applies a delta to the older one has the newer one.
 */
import { create } from "@bufbuild/protobuf";
import {
  type Endpoint,
  EndpointRemovalReason,
  EndpointSchema,
  type Model,
  ModelSchema,
  type RemovedEndpoint,
  RemovedEndpointSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "@heddle/proto/gen/router";
import type { Plain } from "@heddle/proto/plain";
import { compareRevisions, encodeRevision, type Revision } from "@heddle/proto/revision";
import type { Published, RemovalReason } from "../../core/published.ts";

/** Models and endpoints in one message. A message with 100,000 keys blocks a router for 300 ms. */
export const CHUNK_ITEMS = 1_000;

const REMOVAL = {
  stopped: EndpointRemovalReason.STOPPED,
  failed: EndpointRemovalReason.FAILED,
  lost: EndpointRemovalReason.LOST,
} as const satisfies Record<RemovalReason, EndpointRemovalReason>;

/** The whole publication. The last chunk says `snapshotEnd`; there is always one. */
export function snapshotOf(published: Published): readonly WatchResponse[] {
  const { revision, settled } = published;
  return chunked({ before: revision, after: revision, settled }, {
    models: [...published.models.values()],
    removedModels: [],
    endpoints: [...published.endpoints.values()],
    removed: [...published.removed].map(([id, reason]) => removal(id, reason)),
    settledNodes: published.settledNodes,
  }).map((chunk, index, all) => ({
    ...chunk,
    snapshot: true,
    snapshotEnd: index === all.length - 1,
  }));
}

/**
 * The messages that turn `older` into `newer`, none when they are the same publication. Nodes
 * that are no longer settled are not taken back: control has only forgotten them.
 */
export function deltaOf(older: Published, newer: Published): readonly WatchResponse[] {
  const settledBefore = new Set(older.settledNodes);
  const changes: Changes = {
    models: changed(older.models, newer.models),
    removedModels: gone(older.models, newer.models),
    endpoints: changed(older.endpoints, newer.endpoints),
    removed: removals(older, newer),
    settledNodes: newer.settledNodes.filter((node) => !settledBefore.has(node)),
  };
  const before = older.revision;
  const { revision: after, settled } = newer;
  // A new revision without changes is said too: control waits for routers to have applied it.
  const same = Object.values(changes).every((list) => list.length === 0);
  if (same && older.settled === settled && compareRevisions(before, after) === 0) return [];
  return chunked({ before, after, settled }, changes);
}

interface Changes {
  readonly models: readonly Plain<Model>[];
  readonly removedModels: readonly string[];
  readonly endpoints: readonly Plain<Endpoint>[];
  readonly removed: readonly RemovedEndpoint[];
  readonly settledNodes: readonly string[];
}

interface Step {
  /** What a router has until the last chunk: it must not report a revision that it has half of. */
  readonly before: Revision;
  readonly after: Revision;
  readonly settled: boolean;
}

// Models go before endpoints, so that a router knows a model before its endpoints. Small lists, and
// what says that something is over, go with the last chunk.
function chunked({ before, after, settled }: Step, changes: Changes): WatchResponse[] {
  const chunks = [
    ...slices(changes.models).map((part) => ({ models: part.map(asModel) })),
    ...slices(changes.endpoints).map((part) => ({ endpoints: part.map(asEndpoint) })),
  ];
  const last = {
    revision: encodeRevision(after),
    settled,
    removedModels: [...changes.removedModels],
    removedEndpoints: [...changes.removed],
    settledNodes: [...changes.settledNodes],
  };
  return [...chunks.slice(0, -1), { ...chunks.at(-1), ...last }]
    .map((chunk) => create(WatchResponseSchema, { revision: encodeRevision(before), ...chunk }));
}

function slices<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / CHUNK_ITEMS);
  return Array.from(
    { length: count },
    (_, index) => items.slice(index * CHUNK_ITEMS, (index + 1) * CHUNK_ITEMS),
  );
}

function changed<V>(older: ReadonlyMap<string, V>, newer: ReadonlyMap<string, V>): V[] {
  return [...newer].filter(([key, value]) => older.get(key) !== value).map(([, value]) => value);
}

function gone(older: ReadonlyMap<string, unknown>, newer: ReadonlyMap<string, unknown>): string[] {
  return [...older.keys()].filter((key) => !newer.has(key));
}

// What control learns to be gone is said even if it was never an endpoint of ours: a router may
// have it from the control before. What left both maps has been stopped.
function removals(older: Published, newer: Published): RemovedEndpoint[] {
  const said = [...newer.removed]
    .filter(([id, reason]) => older.endpoints.has(id) || older.removed.get(id) !== reason)
    .map(([id, reason]) => removal(id, reason));
  const stopped = gone(older.endpoints, newer.endpoints)
    .filter((id) => !newer.removed.has(id))
    .map((id) => removal(id, "stopped"));
  return [...said, ...stopped];
}

function removal(replicaId: string, reason: RemovalReason): RemovedEndpoint {
  return create(RemovedEndpointSchema, { replicaId, reason: REMOVAL[reason] });
}

function asModel(model: Plain<Model>): Model {
  const { aliases, fallbacks, ...rest } = model;
  return create(ModelSchema, { ...rest, aliases: [...aliases], fallbacks: [...fallbacks] });
}

function asEndpoint(endpoint: Plain<Endpoint>): Endpoint {
  return create(EndpointSchema, endpoint);
}
