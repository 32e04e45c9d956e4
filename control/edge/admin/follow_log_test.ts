import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { ReadLogsRequestSchema } from "@heddle/proto/gen/admin";
import { InventorySchema, ShardReportSchema, ShardState } from "@heddle/proto/gen/types";
import { NO_REVISION } from "@heddle/proto/revision";
import { parseCatalog } from "../../core/catalog.ts";
import { observe } from "../../core/observing/observe.ts";
import { NO_DECISIONS, type Replica, startWorld, type World } from "../../core/world.ts";
import type { LogSource } from "../log_requests.ts";
import { readFound } from "./follow_log.ts";

const CATALOG =
  "models: [{name: demo, source: s, profiles: [{name: p, engine: vllm, gpu_class: h100-80g}]}]";
const NODE = "gpu-01";

/** A world with these replicas of the catalog's model, each ready on one node. */
function worldWith(...replicas: readonly (Partial<Replica> & { readonly id: string })[]): World {
  const parsed = parseCatalog(CATALOG, "c");
  if (parsed.kind !== "ok") throw new Error("the catalog of this test is wrong");
  const world = observe(
    startWorld({
      cluster: "test",
      storedTerm: 1,
      catalog: { catalog: parsed.value, text: CATALOG, revision: 1 },
      knownNodes: new Set([NODE]),
      decisions: NO_DECISIONS,
    }, 0),
    {
      kind: "registered",
      node: NODE,
      agentVersion: "0.1.0",
      bootId: "b",
      agentInstance: "i",
      address: "10.0.0.1",
      inventory: create(InventorySchema, { hostname: NODE }),
      shards: replicas.map(({ id }) =>
        create(ShardReportSchema, {
          spec: { shardId: `${id}-0`, replicaId: id, shardCount: 1, model: "demo", profile: "p" },
          status: { shardId: `${id}-0`, replicaId: id, state: ShardState.READY },
        })
      ),
      highestRevision: NO_REVISION,
    },
    0,
  );
  const changed = replicas.map((changes) => {
    const replica = world.replicas.get(changes.id);
    if (replica === undefined) throw new Error(`the world has no ${changes.id}`);
    return [changes.id, { ...replica, ...changes }] as const;
  });
  return { ...world, replicas: new Map(changed) };
}

const FAILURE = {
  reason: "shard_failed",
  message: "out of memory",
  at: 50,
  permanent: false,
  logTail: [],
} as const;

/** What a node gives each time it is asked, then the error or the end. */
interface Reading {
  readonly lines: readonly string[];
  readonly error?: HeddleError;
  /** The operator leaves after it. */
  readonly leaves?: boolean;
}

async function follow(first: World, readings: readonly Reading[], become: (world: World) => World) {
  let world = first;
  const asked: LogSource[] = [];
  const stop = new AbortController();
  const late = AbortSignal.any([stop.signal, AbortSignal.timeout(30_000)]);
  const lines: string[] = [];
  const reader = {
    world: () => world,
    now: () => 100,
    logs: {
      async *read(source: LogSource) {
        const reading = readings[asked.push(source) - 1];
        if (reading === undefined) throw new Error("asked too often");
        yield await Promise.resolve(reading.lines);
        world = become(world);
        if (reading.leaves === true) stop.abort();
        if (reading.error !== undefined) throw reading.error;
      },
    },
  };
  const request = create(ReadLogsRequestSchema, {
    source: { case: "replicaId", value: "demo-1-1" },
    tailLines: 7,
    follow: true,
  });
  for await (const batch of readFound(reader, request, late)) lines.push(...batch.lines);
  return { lines, asked: asked.map(({ source, tailLines }) => [source, tailLines]) };
}

Deno.test("readFound() goes on with the replica that takes the place of one that failed", async () => {
  const first = worldWith({ id: "demo-1-1" }, { id: "demo-1-2", createdAt: 10 });
  const { lines, asked } = await follow(
    first,
    [{ lines: ["a"] }, { lines: ["b"], leaves: true }],
    (before) =>
      before === first
        ? worldWith(
          { id: "demo-1-1", failure: FAILURE },
          { id: "demo-1-2", createdAt: 10 },
          { id: "demo-1-3", createdAt: 60 },
        )
        : before,
  );
  deepEqual(
    asked,
    [["demo-1-1-0", 7], ["demo-1-3-0", 7], ["demo-1-3-0", 7]].slice(0, asked.length),
  );
  deepEqual(lines.slice(0, 4), [
    "a",
    '-- replica "demo-1-1" has ended: shard_failed, out of memory; waiting for what takes its place --',
    '-- replica "demo-1-3" takes its place, on node "gpu-01" --',
    "b",
  ]);
});

Deno.test("readFound() ends with a replica that nothing replaces", async () => {
  const retiring = { reason: "surplus", since: 40 } as const;
  const { lines } = await follow(
    worldWith({ id: "demo-1-1", retiring }),
    [{ lines: ["a"] }],
    (world) => world,
  );
  deepEqual(lines, ["a", '-- replica "demo-1-1" has ended: surplus --']);
});

Deno.test("readFound() waits for a node that is away for a while, and shows no line twice", async () => {
  const error = new HeddleError("unavailable", "its connection was lost");
  const { lines, asked } = await follow(
    worldWith({ id: "demo-1-1" }),
    [{ lines: ["a"], error }, { lines: ["b"], leaves: true }],
    (world) => world,
  );
  deepEqual(asked, [["demo-1-1-0", 7], ["demo-1-1-0", 0]]);
  equal(lines[0], "a");
  match(lines[1] ?? "", /^-- the connection to node "gpu-01" was lost; going on/);
  equal(lines[2], "b");
});

Deno.test("readFound() throws what its first reading throws, whatever it is", async () => {
  const reader = {
    world: () => worldWith({ id: "demo-1-1" }),
    now: () => 100,
    logs: {
      // deno-lint-ignore require-yield
      async *read(): AsyncGenerator<readonly string[]> {
        throw await Promise.resolve(new HeddleError("unavailable", "it is not connected"));
      },
    },
  };
  const request = create(ReadLogsRequestSchema, {
    source: { case: "replicaId", value: "demo-1-1" },
    follow: true,
  });
  const { signal } = new AbortController();
  await rejects(Array.fromAsync(readFound(reader, request, signal)), /not connected/);
});
