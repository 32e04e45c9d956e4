import { deepEqual, equal, match, ok } from "node:assert/strict";
import fc from "fast-check";
import type { Plain } from "@heddle/proto/plain";
import type { Weights } from "@heddle/proto/gen/weights";
import { encodeWeightsState, type WeightsState } from "@heddle/proto/weights_state";
import type { Model } from "../catalog.ts";
import { record } from "../deciding/record.ts";
import { reconcile } from "../reconcile.ts";
import { sourceKey, withSource } from "../facts/source_hint.ts";
import { observe } from "../observing/observe.ts";
import { modelOf, registered, T0, world as emptyWorld } from "../testing/builders.ts";
import type { World } from "../world.ts";
import { UNUSED_MS_MIN, weightsToRemove } from "./make_room.ts";
import { type UnusedByFolder, unusedNow, userOf } from "./unused.ts";

const GIB = 2 ** 30;
const WANTED = "hf://org/wanted";

interface Have {
  readonly source: string;
  readonly gib?: number;
  readonly state?: WeightsState;
  readonly version?: string;
  readonly reason?: string;
  readonly shardIds?: readonly string[];
}

function folderOf({ source, version = "v1" }: Have): string {
  return `${source.replaceAll(/\W+/g, "-")}-0123456789abcd@${version}`;
}

function weightsOf(have: Have): Plain<Weights> {
  const { source, gib = 40, state = "ready", version = "v1", reason = "", shardIds = [] } = have;
  return {
    want: { source, include: [], exclude: [], version },
    state: encodeWeightsState(state),
    folder: state === "ready" ? folderOf(have) : "",
    path: "",
    sizeBytes: BigInt(gib * GIB),
    doneBytes: 0n,
    reason,
    message: "",
    shardIds,
  };
}

interface Site {
  readonly freeGib: number;
  readonly has: readonly Have[];
  readonly shared?: boolean;
}

/** A world whose nodes have registered with these weights and this much room. */
function worldOf(models: readonly Model[], nodes: Readonly<Record<string, Site>>): World {
  return Object.entries(nodes).reduce((so, [name, { freeGib, has, shared = false }]) => {
    const event = registered(name);
    const freeBytes = BigInt(Math.round(freeGib * GIB));
    return observe(so, {
      ...event,
      inventory: {
        ...event.inventory,
        modelDirs: [{ path: "/m", freeBytes, shared }],
        weights: { weights: has.map(weightsOf) },
      },
    }, T0);
  }, emptyWorld(models));
}

const LATER = T0 + UNUSED_MS_MIN;
const SETTINGS = { freeBelowBytes: 20 * GIB, now: LATER };

/** What goes once the nodes have been heard again. */
function removalsOf(world: World, before: UnusedByFolder = unusedNow(world, new Map(), T0)) {
  const nodes = new Map(
    [...world.nodes].map(([name, node]) => [name, { ...node, lastSeenAt: LATER }] as const),
  );
  const heard = { ...world, nodes };
  return weightsToRemove(heard, unusedNow(heard, before, LATER), SETTINGS);
}

const KEPT = modelOf({ name: "kept", source: "hf://org/kept" });

Deno.test("weightsToRemove() takes nothing while there is room", () => {
  const world = worldOf([KEPT], { n1: { freeGib: 20, has: [{ source: "hf://org/old" }] } });
  deepEqual(removalsOf(world), []);
});

Deno.test("weightsToRemove() takes what nobody asks for when the disk runs short", () => {
  const has = [{ source: "hf://org/kept" }, { source: "hf://org/old" }];
  const [removal, ...more] = removalsOf(worldOf([KEPT], { n1: { freeGib: 19.5, has } }));
  deepEqual(more, []);
  equal(removal?.source, "hf://org/old");
  equal(removal?.reason, "disk_pressure");
  match(
    removal?.detail ?? "",
    /^19\.5 GiB are free on its disk of weights, less than 20\.0; nobody asked for it for 1m$/,
  );
});

Deno.test("weightsToRemove() begins with what is unused for longest, then fetched first", () => {
  const first = worldOf([KEPT], { n1: { freeGib: 1, has: [{ source: "hf://org/b" }] } });
  const has = [{ source: "hf://org/a" }, { source: "hf://org/b" }, { source: "hf://org/c" }];
  const world = worldOf([KEPT], { n1: { freeGib: 1, has } });
  const seen = unusedNow(first, new Map(), T0 - 1_000);
  equal(removalsOf(world, unusedNow(world, seen, T0))[0]?.source, "hf://org/b");
  equal(removalsOf(world)[0]?.source, "hf://org/a");
});

Deno.test("weightsToRemove() waits before it believes that nobody asks", () => {
  const world = worldOf([KEPT], { n1: { freeGib: 1, has: [{ source: "hf://org/old" }] } });
  const unused = unusedNow(world, new Map(), T0 + 1);
  deepEqual(weightsToRemove(world, unused, SETTINGS), []);
  // Asked for again in between, it begins anew.
  const asked = { ...world, catalog: { ...world.catalog, catalog: { models: [OLD] } } };
  const again = unusedNow(world, unusedNow(asked, unused, T0 + 2), T0 + 3);
  equal([...again.values()][0]?.since, T0 + 3);
});

const OLD = modelOf({ name: "old", source: "hf://org/old" });

const ASKED: readonly (readonly [why: string, models: readonly Model[], Have])[] = [
  ["a model of the catalog", [OLD], { source: "hf://org/old" }],
  ["a model of the catalog, in another version", [OLD], { source: "hf://org/old", version: "v0" }],
  ["a shard, as its node says", [KEPT], { source: "hf://org/old", shardIds: ["s"] }],
  [
    "a model whose source is a path into its folder",
    [modelOf({ name: "p", source: `/m/heddle/${folderOf({ source: "hf://org/old" })}/x.gguf` })],
    { source: "hf://org/old" },
  ],
  [
    "a profile that has its path among its args",
    [modelOf({ name: "p" }, {
      args: ["--speculative-config", `{"model":"/m/${folderOf({ source: "hf://org/old" })}"}`],
    })],
    { source: "hf://org/old" },
  ],
  ["whoever fetches it now", [KEPT], { source: "hf://org/old", state: "fetching" }],
];

for (const [why, models, have] of ASKED) {
  Deno.test(`weightsToRemove() never takes what is asked for by ${why}`, () => {
    deepEqual(removalsOf(worldOf(models, { n1: { freeGib: 0, has: [have] } })), []);
  });
}

Deno.test("weightsToRemove() leaves older versions alone while a newer one is fetched", () => {
  const has: Have[] = [
    { source: "hf://org/old", version: "v1" },
    { source: "hf://org/old", version: "v2", state: "fetching" },
  ];
  deepEqual(removalsOf(worldOf([KEPT], { n1: { freeGib: 0, has } })), []);
});

/** A replica of OLD runs on n1; then OLD leaves the catalog. */
function leaving(): World {
  const site = { freeGib: 1, has: [{ source: "hf://org/old" }] };
  const running = worldOf([OLD], { n1: site, n2: site });
  const placed = record(running, reconcile(running, T0), T0);
  equal(placed.replicas.size, 1);
  return { ...placed, catalog: { ...placed.catalog, catalog: { models: [KEPT] } } };
}

Deno.test("weightsToRemove() never takes what a replica runs from, on whichever node", () => {
  const world = leaving();
  deepEqual(removalsOf(world), []);
  const gone = { ...world, replicas: new Map() };
  deepEqual(removalsOf(gone).map(({ node }) => node), ["n1"]);
});

Deno.test("userOf() names the shard that runs from a folder", () => {
  const world = leaving();
  const [replica] = world.replicas.values();
  const node = replica?.shards[0]?.node ?? "";
  const folder = folderOf({ source: "hf://org/old" });
  equal(userOf(world, node, folder), replica?.shards[0]?.id);
  equal(userOf(world, node === "n1" ? "n2" : "n1", folder), undefined);
  equal(userOf(world, node, "another"), undefined);
});

Deno.test("userOf() takes a folder that its node has not told of for what a shard fetches there", () => {
  const before = leaving();
  const [replica] = before.replicas.values();
  const node = replica?.shards[0]?.node ?? "";
  const folder = folderOf({ source: "hf://org/old" });
  const there = before.nodes.get(node);
  ok(there !== undefined);
  const fetching = weightsOf({ source: "hf://org/old", state: "fetching" });
  const inventory = { ...there.inventory, weights: { weights: [fetching] } };
  const world = { ...before, nodes: new Map([[node, { ...there, inventory }]]) };
  equal(userOf(world, node, folder), replica?.shards[0]?.id);
  equal(userOf(world, node, `.partial-${folderOf({ source: "hf://org/left" })}`), undefined);
});

Deno.test("weightsToRemove() decides nothing before control has settled", () => {
  const world = worldOf([KEPT], { n1: { freeGib: 1, has: [{ source: "hf://org/old" }] } });
  deepEqual(
    removalsOf({ ...world, startedAt: LATER, knownNodes: new Set(["n1", "n2"]) }),
    [],
  );
});

Deno.test("weightsToRemove() asks no node that is away", () => {
  const world = worldOf([KEPT], { n1: { freeGib: 1, has: [{ source: "hf://org/old" }] } });
  deepEqual(removalsOf(observe(world, { kind: "stream_closed", node: "n1" }, T0)), []);
});

Deno.test("weightsToRemove() removes from a shared folder once, and not while a node is away", () => {
  const site = { freeGib: 1, has: [{ source: "hf://org/old" }], shared: true };
  const world = worldOf([KEPT], { n1: site, n2: site });
  deepEqual(removalsOf(world).map(({ node }) => node), ["n1"]);
  deepEqual(removalsOf(observe(world, { kind: "stream_closed", node: "n2" }, T0)), []);
});

const NEW = modelOf({ name: "new", source: WANTED });

/** A model of 100 GiB that no node has. */
function wanting(site: Site, model = NEW): World {
  return withSource(worldOf([model], { n1: site }), sourceKey(model), {
    version: "v9",
    totalBytes: 100 * GIB,
    weightBytes: undefined,
  });
}

/** The same after placement found no room for it. */
function waiting(site: Site, model = NEW): World {
  const world = wanting(site, model);
  return record(world, reconcile(world, T0), T0);
}

Deno.test("weightsToRemove() makes room for a model that fits but for unused weights", () => {
  const has = [{ source: "hf://org/old" }, { source: "hf://org/older" }];
  const world = waiting({ freeGib: 50, has });
  match(world.models.get("new")?.noRoom ?? "", /disk_short/);
  const [removal, ...more] = removalsOf(world);
  deepEqual(more, []);
  equal(removal?.reason, "room_for_model");
  match(removal?.detail ?? "", /^new needs the room for hf:\/\/org\/wanted; nobody asked/);
});

Deno.test("weightsToRemove() takes nothing for a model that would not fit even then", () => {
  deepEqual(removalsOf(waiting({ freeGib: 50, has: [{ source: "hf://org/old" }] })), []);
  const large = modelOf({ name: "new", source: WANTED }, { tp: 16, nodes: 1 });
  const has = [{ source: "hf://org/old", gib: 90 }];
  deepEqual(removalsOf(waiting({ freeGib: 50, has }, large)), []);
});

Deno.test("weightsToRemove() takes nothing for a model that is paused, or has all it should", () => {
  const has = [{ source: "hf://org/old", gib: 90 }];
  const world = waiting({ freeGib: 50, has });
  equal(removalsOf(world).length, 1);
  const pause = { kind: "pause", model: "new", by: "ops", reason: "" } as const;
  deepEqual(removalsOf(observe(world, pause, T0)), []);
  const none = { kind: "scale", model: "new", by: "ops", reason: "", replicas: 0 } as const;
  deepEqual(removalsOf(observe(world, none, T0)), []);
});

Deno.test("weightsToRemove() makes room where a fetch ended for want of it", () => {
  const has: Have[] = [
    { source: "hf://org/old", gib: 90 },
    { source: WANTED, state: "failed", reason: "disk_full" },
  ];
  const [removal] = removalsOf(wanting({ freeGib: 105, has }));
  equal(removal?.source, "hf://org/old");
  equal(removal?.reason, "room_for_model");
  deepEqual(removalsOf(wanting({ freeGib: 120, has })), []);
});

Deno.test("weightsToRemove() takes only what is unused, one a node, whatever the fleet has", () => {
  const sources = ["a", "b", "c", "d"].map((name) => `hf://org/${name}`);
  const have = fc.record({
    source: fc.constantFrom(...sources),
    state: fc.constantFrom<WeightsState>("ready", "fetching", "failed"),
    version: fc.constantFrom("v1", "v2"),
  });
  const site = fc.record({
    freeGib: fc.integer({ min: 0, max: 60 }),
    has: fc.uniqueArray(have, { maxLength: 6, selector: (each) => JSON.stringify(each) }),
    shared: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom("n1", "n2", "n3"), site),
      fc.subarray(sources),
      (nodes, asked) => {
        const models = asked.map((source, index) => modelOf({ name: `m${index}`, source }));
        const world = worldOf(models, nodes);
        const removals = removalsOf(world);
        equal(new Set(removals.map(({ node }) => node)).size, removals.length);
        for (const { node, source, folder, reason } of removals) {
          ok(!asked.includes(source), `${source} is asked for`);
          const there = world.nodes.get(node)?.inventory.weights?.weights ?? [];
          ok(there.some((each) => each.folder === folder && each.want?.source === source));
          // Each weighs 40 GiB, and what another node has says so.
          ok((nodes[node]?.freeGib ?? 0) < (reason === "disk_pressure" ? 20 : 40));
        }
      },
    ),
    { numRuns: 1_000 },
  );
});
