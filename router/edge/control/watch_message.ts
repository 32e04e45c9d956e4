/** Control's Watch messages as updates of the routing table, and back for the snapshot on disk. */
import { create } from "@bufbuild/protobuf";
import { formatAddress, parseAddress } from "@heddle/common/address";
import { errorText } from "@heddle/proto/error";
import {
  type Endpoint as WireEndpoint,
  EndpointSchema,
  type Model as WireModel,
  ModelSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "@heddle/proto/gen/router";
import { decodeRevision, encodeRevision } from "@heddle/proto/revision";
import { readBand } from "../../core/admission/band.ts";
import type { Endpoint, Model } from "../../core/fleet/endpoint.ts";
import type { Table, TableUpdate } from "../../core/fleet/table.ts";

export interface DecodedWatch {
  readonly update: TableUpdate;
  /** Endpoints that make no sense and were left out, in words for the log. */
  readonly problems: readonly string[];
}

/** Reads one message. What cannot be used is left out and named, so that the rest still counts. */
export function decodeWatch(message: WatchResponse): DecodedWatch {
  const endpoints: Endpoint[] = [];
  const problems: string[] = [];
  for (const wire of message.endpoints) {
    try {
      endpoints.push(decodeEndpoint(wire));
    } catch (error) {
      problems.push(`Cannot use endpoint "${wire.replicaId}": ${errorText(error)}`);
    }
  }
  return {
    update: {
      revision: decodeRevision(message.revision),
      snapshot: message.snapshot,
      snapshotEnd: message.snapshotEnd,
      models: message.models.map(decodeModel),
      removedModels: message.removedModels,
      endpoints,
      removedReplicas: message.removedEndpoints.map(({ replicaId }) => replicaId),
      settledNodes: message.settledNodes,
      settled: message.settled,
    },
    problems,
  };
}

/** The whole table as one snapshot message. */
export function encodeTable(table: Table): WatchResponse {
  return create(WatchResponseSchema, {
    revision: encodeRevision(table.revision),
    snapshot: true,
    snapshotEnd: true,
    models: [...table.models.values()].map(encodeModel),
    endpoints: [...table.endpoints.values()].map(encodeEndpoint),
    settledNodes: [...table.settledNodes],
    settled: table.settled,
  });
}

function decodeEndpoint(wire: WireEndpoint): Endpoint {
  const { host, port } = parseAddress(wire.address);
  return {
    replicaId: wire.replicaId,
    model: wire.model,
    // Control's engines speak plain HTTP on the fleet's own network.
    origin: { secure: false, host, port, basePath: "" },
    node: wire.node,
    engine: wire.engine,
    profile: wire.profile,
    servedName: wire.servedName === "" ? wire.model : wire.servedName,
    apiKey: wire.apiKey,
    weight: wire.weight === 0 ? 1 : wire.weight,
    priority: wire.priority,
    draining: wire.draining,
    degraded: wire.degraded,
    maxModelLen: wire.maxModelLen,
    gpus: wire.gpus,
    pool: wire.pool,
  };
}

function encodeEndpoint({ origin, maxModelLen, ...endpoint }: Endpoint): WireEndpoint {
  return create(EndpointSchema, {
    ...endpoint,
    address: formatAddress(origin),
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  });
}

function decodeModel(wire: WireModel): Model {
  const { sloTtftMs, sloTpotMs, capacity } = wire;
  const band = readBand(wire.band);
  return {
    name: wire.name,
    aliases: wire.aliases,
    fallbacks: wire.fallbacks,
    routingProfile: wire.routingProfile,
    reason: wire.reason,
    wakeable: wire.wakeable,
    createdS: Number(wire.createdS),
    ...(band === undefined ? {} : { band }),
    ...(capacity === undefined || capacity === 0 ? {} : { capacity }),
    ...(sloTtftMs === undefined && sloTpotMs === undefined ? {} : {
      slo: {
        ...(sloTtftMs === undefined ? {} : { ttftMs: sloTtftMs }),
        ...(sloTpotMs === undefined ? {} : { tpotMs: sloTpotMs }),
      },
    }),
  };
}

function encodeModel({ createdS, slo, ...model }: Model): WireModel {
  return create(ModelSchema, {
    ...model,
    aliases: [...model.aliases],
    fallbacks: [...model.fallbacks],
    createdS: BigInt(createdS),
    ...(slo?.ttftMs === undefined ? {} : { sloTtftMs: slo.ttftMs }),
    ...(slo?.tpotMs === undefined ? {} : { sloTpotMs: slo.tpotMs }),
  });
}
