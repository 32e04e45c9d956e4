/** Publications for tests, and a router that does with them what the wire's comments promise. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Endpoint,
  EndpointSchema,
  type Model,
  ModelSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "@heddle/proto/gen/router";
import type { Key, ModelPrice, Scope } from "@heddle/proto/gen/tenancy";
import { decodeRevision, NO_REVISION, type Revision } from "@heddle/proto/revision";
import type { Published } from "../../core/published.ts";

export function model(name: string, reason = ""): Model {
  return create(ModelSchema, { name, reason, aliases: [`${name}-alias`] });
}

export function endpoint(replicaId: string, weight = 1): Endpoint {
  return create(EndpointSchema, { replicaId, weight, apiKey: `sk-heddle-${replicaId}` });
}

export const NOTHING: Published = {
  revision: { term: 1, sequence: 0 },
  models: new Map(),
  endpoints: new Map(),
  removed: new Map(),
  settledNodes: [],
  settled: false,
};

/** A router's fold over Watch messages, each through its bytes as on the wire. */
export class FakeRouter {
  revision: Revision = NO_REVISION;
  models = new Map<string, Model>();
  endpoints = new Map<string, Endpoint>();
  keys = new Map<string, Key>();
  scopes = new Map<string, Scope>();
  prices = new Map<string, ModelPrice>();
  recalled: string[] = [];
  settledNodes = new Set<string>();
  settled = false;
  readonly removals: (readonly [replicaId: string, reason: number])[] = [];
  #pending: WatchResponse[] = [];

  receive(sent: WatchResponse): void {
    const message = fromBinary(WatchResponseSchema, toBinary(WatchResponseSchema, sent));
    if (!message.snapshot) return this.#apply(message);
    this.#pending.push(message);
    if (!message.snapshotEnd) return;
    this.models.clear();
    this.endpoints.clear();
    this.keys.clear();
    this.scopes.clear();
    this.prices.clear();
    this.settledNodes.clear();
    for (const chunk of this.#pending) this.#apply(chunk);
    this.#pending = [];
  }

  #apply(message: WatchResponse): void {
    this.revision = decodeRevision(message.revision);
    for (const each of message.models) this.models.set(each.name, each);
    for (const name of message.removedModels) this.models.delete(name);
    for (const each of message.endpoints) this.endpoints.set(each.replicaId, each);
    for (const { replicaId, reason } of message.removedEndpoints) {
      this.endpoints.delete(replicaId);
      this.removals.push([replicaId, reason]);
    }
    for (const id of message.removedKeys) this.keys.delete(id);
    for (const each of message.keys) this.keys.set(each.id, each);
    for (const id of message.removedScopes) this.scopes.delete(id);
    for (const each of message.scopes) this.scopes.set(each.id, each);
    for (const model of message.removedPrices) this.prices.delete(model);
    for (const each of message.prices) this.prices.set(each.model, each);
    this.recalled.push(...message.recalledScopes);
    for (const node of message.settledNodes) this.settledNodes.add(node);
    this.settled ||= message.settled;
  }
}
