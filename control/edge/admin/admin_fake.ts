/** The admin service over the real core, without a store, and a client that an operator has. */
import { equal, match } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type Code, ConnectError, createClient } from "@connectrpc/connect";
import { AdminService } from "@heddle/proto/gen/admin";
import { InventorySchema, ShardReportSchema, ShardState } from "@heddle/proto/gen/types";
import { NO_REVISION } from "@heddle/proto/revision";
import { parseCatalog } from "../../core/catalog.ts";
import type { CatalogApplied, OperatorEvent, Registered } from "../../core/event.ts";
import { observe } from "../../core/observing/observe.ts";
import { type Audit, storeRecords } from "../../core/store_record.ts";
import { NO_DECISIONS, startWorld, type World } from "../../core/world.ts";
import { BoundedQueue } from "../bounded_queue.ts";
import { Listener, REALM } from "../listener_fake.ts";
import { LogRequests } from "../log_requests.ts";
import type { NodeMessage } from "../node_streams.ts";
import { adminRpc } from "./admin_rpc.ts";

const START = 1_000;
const CATALOG = `
models:
  - {name: demo, aliases: [default], source: s, profiles: [{name: p, engine: vllm, gpu_class: h100-80g}]}
`;

function worldWithNode(): World {
  const parsed = parseCatalog(CATALOG, "c");
  if (parsed.kind !== "ok") throw new Error("the catalog of this test is wrong");
  const world = startWorld({
    cluster: "test",
    storedTerm: 4,
    catalog: { catalog: parsed.value, text: CATALOG, revision: 1 },
    knownNodes: new Set(["gpu-02"]),
    decisions: NO_DECISIONS,
  }, 0);
  return observe(world, registration([]), 500.25);
}

function registration(shards: Registered["shards"]): Registered {
  return {
    kind: "registered",
    node: "gpu-01",
    agentVersion: "0.1.0",
    bootId: "b",
    agentInstance: "i",
    address: "10.0.0.1",
    inventory: create(InventorySchema, { hostname: "gpu-01", labels: { rack: "r1" } }),
    shards,
    highestRevision: NO_REVISION,
  };
}

/** A replica of the catalog's model that serves on gpu-01. */
function running(replicaId: string): Registered["shards"][number] {
  const shardId = `${replicaId}-0`;
  return create(ShardReportSchema, {
    spec: { shardId, replicaId, shardCount: 1, model: "demo", profile: "p", engine: "vllm" },
    status: { shardId, replicaId, state: ShardState.READY, address: "10.0.0.1:20000" },
  });
}

/** The admin service over the real core, without a store. */
export function fakeAdmin(secured = true) {
  let now = START;
  let world = worldWithNode();
  const audits: Audit[] = [];
  const sent = new BoundedQueue<NodeMessage>(10);
  const logs = new LogRequests((_node, message) => void sent.push(message));
  const loop = {
    dispatch(event: OperatorEvent | CatalogApplied) {
      const before = world;
      world = observe(world, event, now);
      for (const record of storeRecords(before, world, event, now)) {
        if (record.kind === "audit") audits.push(record);
      }
      return Promise.resolve();
    },
    world: () => world,
    now: () => now,
  };
  const standing = { leading: true, sure: true, leader: undefined, away: undefined };
  const handlers = adminRpc({
    realm: { ...REALM, secured },
    logs,
    loop,
    seat: { name: "a", standing, leadership: loop },
    audit: (limit) => Promise.resolve(audits.slice(-limit).reverse()),
    catalogFile: () => ({ file: "/c.yaml", state: "invalid", detail: "/c.yaml:1:1: no" }),
    superseded: () => Promise.resolve(),
  });
  return {
    sent,
    logs,
    handlers,
    /** Lets time pass; gpu-01 stays in touch. */
    pass(ms: number) {
      now += ms;
      world = observe(world, registration([]), now);
    },
    /** Puts a replica on gpu-01, and gives its id. */
    place() {
      const id = "demo-4-1";
      world = observe(world, registration([running(id)]), now);
      return id;
    },
  };
}

/** The same behind a real listener, with a client whose certificate says "ann". */
export async function adminBench() {
  const { handlers, ...fake } = fakeAdmin();
  const listener = await Listener.start({
    roles: ["operator"],
    routes: (router) => router.service(AdminService, handlers),
  });
  return {
    ...fake,
    listener,
    client: createClient(AdminService, await listener.connect("operator", "ann")),
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

/** For `rejects`: that code, and these words. */
export const refused = (code: Code, words: RegExp) => (error: unknown) => {
  const { code: found, rawMessage } = ConnectError.from(error);
  equal(found, code, rawMessage);
  match(rawMessage, words);
  return true;
};
