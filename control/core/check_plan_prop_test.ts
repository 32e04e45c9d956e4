/** Whatever fleet a plan is made for: it passes as it is, and not with one thing in it made wrong. */
import { deepEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { checkPlan, type Rule } from "./check_plan.ts";
import { observe } from "./observing/observe.ts";
import type { Action, PlaceReplica, Plan } from "./plan.ts";
import { reconcile } from "./reconcile.ts";
import { modelOf, type NodeShape, T0, worldWith } from "./testing/builders.ts";
import { casesOf } from "./testing/random.ts";
import type { Node, World } from "./world.ts";

type Shard = PlaceReplica["shards"][number];

const shape: fc.Arbitrary<NodeShape> = fc.record({
  gpus: fc.constantFrom(4, 8),
  gpuClass: fc.constantFrom("h100-80g", "a100-80g"),
  fabric: fc.constantFrom("ib-a", "ib-b"),
  hcas: fc.constantFrom(4, 8),
});

const model = fc.record({
  tp: fc.constantFrom(1, 2, 4),
  nodes: fc.constantFrom(1, 2),
  min: fc.integer({ min: 1, max: 2 }),
});

const fleet = fc.record({
  shapes: fc.array(shape, { minLength: 2, maxLength: 6 }),
  models: fc.array(model, { minLength: 1, maxLength: 3 }),
}).map(({ shapes, models }) =>
  worldWith(
    models.map(({ tp, nodes, min }, index) =>
      modelOf({ name: `m${index}`, scaling: { min } }, { tp, pp: nodes, nodes })
    ),
    Object.fromEntries(shapes.map((each, index) => [`n${index}`, each])),
  )
);

/** One of the plan's placements, and one shard of it. */
interface Chosen {
  readonly world: World;
  readonly plan: Plan;
  readonly placed: PlaceReplica;
  readonly shard: Shard;
}

interface Broken {
  readonly world: World;
  readonly plan: Plan;
  readonly now?: number;
}

/** How to break it; undefined where there is nothing to break in that way. */
type Breakage = readonly [Rule, (chosen: Chosen) => Broken | undefined];

const BREAKAGES: readonly Breakage[] = [
  [
    "gpu_used_twice",
    ({ world, plan, placed }) =>
      changed(world, plan, [...plan.actions, { ...placed, replica: "again" }]),
  ],
  [
    "ports_overlap",
    ({ world, plan, placed }) =>
      changed(world, plan, [...plan.actions, { ...placed, replica: "again" }]),
  ],
  ["gpu_unusable", (chosen) => withSpec(chosen, { gpus: [{ index: 0, uuid: "GPU-nowhere" }] })],
  ["gpu_unusable", (chosen) =>
    withNode(chosen, ({ inventory }) => ({
      gpus: inventory.gpus.map((gpu) => ({
        ...gpu,
        problems: [{ reason: "xid", detail: "", remedy: "" }],
      })),
    }))],
  [
    "fabric_mixed",
    (chosen) =>
      chosen.placed.shards.length < 2 ? undefined : withSpec(chosen, { fabric: "elsewhere" }),
  ],
  [
    "hcas_foreign",
    (chosen) =>
      chosen.shard.spec.hcas.length === 0 ? undefined : withNode(chosen, ({ inventory }) => ({
        hcas: inventory.hcas.map((hca) => ({ ...hca, active: false })),
      })),
  ],
  [
    "hca_count_uneven",
    (chosen) =>
      chosen.placed.shards.length < 2
        ? undefined
        : withSpec(chosen, { hcas: chosen.shard.spec.hcas.slice(1) }),
  ],
  [
    "replica_not_whole",
    ({ world, plan, placed }) =>
      changed(
        world,
        plan,
        plan.actions.filter((action) =>
          action.kind !== "start_shard" || action.replica !== placed.replica
        ),
      ),
  ],
  ["replica_not_whole", (chosen) => withSpec(chosen, { rank: 7 })],
  ["node_unschedulable", ({ world, plan, shard }) => ({
    world: observe(world, { kind: "drain", node: shard.node, by: "ops", reason: "" }, T0),
    plan,
  })],
  ["node_unschedulable", ({ world, plan, shard }) => ({
    world: observe(world, { kind: "stream_closed", node: shard.node }, T0),
    plan,
  })],
  ["node_unschedulable", ({ world, plan }) => ({
    world,
    plan,
    now: T0 + world.timings.unreachableMs,
  })],
  ["not_settled", ({ world, plan }) => ({
    world: { ...world, knownNodes: new Set([...world.knownNodes, "unheard"]) },
    plan,
  })],
  ["revision_old", ({ world, plan }) => ({ world: { ...world, term: world.term + 1 }, plan })],
  ["two_commands", ({ world, plan }) =>
    changed(world, plan, [
      ...plan.actions,
      ...plan.actions.filter((action) => action.kind === "start_shard"),
    ])],
];

function changed(world: World, plan: Plan, actions: readonly Action[]): Broken {
  return { world, plan: { ...plan, actions } };
}

function withSpec({ world, plan, placed, shard }: Chosen, change: Partial<Shard["spec"]>): Broken {
  const shards = placed.shards.map((each) =>
    each === shard ? { ...each, spec: { ...each.spec, ...change } } : each
  );
  return changed(
    world,
    plan,
    plan.actions.map((action) => action === placed ? { ...placed, shards } : action),
  );
}

function withNode(
  { world, plan, shard }: Chosen,
  change: (node: Node) => Partial<Node["inventory"]>,
): Broken | undefined {
  const node = world.nodes.get(shard.node);
  if (node === undefined) return undefined;
  const inventory = { ...node.inventory, ...change(node) };
  return {
    world: { ...world, nodes: new Map(world.nodes).set(node.name, { ...node, inventory }) },
    plan,
  };
}

Deno.test("checkPlan() passes what reconcile() plans, and names the rule that a change of it breaks", () => {
  let broken = 0;
  fc.assert(
    fc.property(
      fleet,
      fc.nat(),
      fc.nat(),
      fc.constantFrom(...BREAKAGES),
      (world, a, b, breakage) => {
        const plan = reconcile(world, T0);
        deepEqual(checkPlan(world, plan, T0), []);
        const placements = plan.actions.filter((action) => action.kind === "place_replica");
        const placed = placements[a % Math.max(1, placements.length)];
        const shard = placed?.shards[b % placed.shards.length];
        if (placed === undefined || shard === undefined) return;
        const [rule, breakIt] = breakage;
        const made = breakIt({ world, plan, placed, shard });
        if (made === undefined) return;
        broken++;
        const found = checkPlan(made.world, made.plan, made.now ?? T0).map((each) => each.rule);
        ok(found.includes(rule), `${rule} is not among ${found.join(", ") || "nothing"}`);
      },
    ),
    casesOf(2_000),
  );
  ok(broken >= 1_000, `only ${broken} plans could be broken`);
});
