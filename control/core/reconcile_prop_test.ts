import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { checkPlan } from "./check_plan.ts";
import type { EpochMs } from "./ids.ts";
import type { Action, Plan } from "./plan.ts";
import { publish } from "./publish.ts";
import { reconcile } from "./reconcile.ts";
import { record } from "./deciding/record.ts";
import { casesOf } from "./testing/random.ts";
import { scenario } from "./testing/life/scenario.ts";
import { trouble } from "./testing/life/trouble.ts";
import type { World } from "./world.ts";

/** A short life on a few nodes; one in twenty is long, on more of them. */
const life = fc.record({
  seed: fc.nat(),
  long: fc.oneof({ weight: 19, arbitrary: fc.constant(false) }, fc.constant(true)),
});

/**
 * Checks every pass of 1,000 random simulated lives: the worlds are those that control can get into,
 * at their worst moments.
 */
function onEveryPass(check: (world: World, plan: Plan, now: EpochMs) => void): void {
  let passes = 0;
  const runs = casesOf(1_000);
  fc.assert(
    fc.property(life, ({ seed, long }) => {
      const lived = scenario(seed, long ? 12 : 4);
      const { sim } = lived;
      sim.onPass = (world, plan, now) => {
        passes++;
        check(world, plan, now);
      };
      sim.run(long ? 10_000 : 3_000);
      trouble(lived, long ? 60_000 : 12_000);
      sim.run(long ? 5_000 : 2_000);
    }),
    runs,
  );
  equal(passes > 10 * runs.numRuns, true, `${passes} passes`);
}

/** Passes that one moment may take until nothing is left to decide. */
const PASSES_TO_REST = 40;

Deno.test("reconcile() comes to rest, asks for a pass until then, and says nothing twice", () => {
  onEveryPass((world, plan, now) => {
    const said = new Set<string>();
    let current = world;
    let next = plan;
    for (let pass = 1; next.actions.length > 0; pass++) {
      equal(pass <= PASSES_TO_REST, true, `still deciding: ${next.actions.map(spoken).join(", ")}`);
      equal(next.wakeAt, now + 1);
      for (const action of next.actions) {
        const words = spoken(action);
        equal(said.has(words), false, words);
        said.add(words);
      }
      current = record(current, next, now);
      next = reconcile(current, now);
    }
  });
});

/** A decision without what makes two of them differ although they ask for the same thing. */
function spoken(action: Action): string {
  const subject = "shard" in action ? action.shard : "replica" in action ? action.replica : "";
  return `${action.kind} ${subject}`;
}

Deno.test("reconcile() keeps, acts on, or explains every shard exactly once", () => {
  onEveryPass((world, plan, now) => {
    const shards = [...world.replicas.values(), ...record(world, plan, now).replicas.values()]
      .flatMap((replica) => replica.shards.map((shard) => shard.id));
    const treated = [
      ...plan.kept,
      ...plan.waiting.filter((wait) => wait.subject === "shard").map((wait) => wait.id),
      ...plan.actions.flatMap((action) =>
        "shard" in action && "node" in action ? action.shard : []
      ),
    ];
    deepEqual(treated.toSorted(), [...new Set(shards)].sort());
  });
});

Deno.test("reconcile() does not depend on the order of the world's maps", () => {
  onEveryPass((world, plan, now) => {
    const reversed: World = {
      ...world,
      nodes: new Map([...world.nodes].reverse()),
      replicas: new Map([...world.replicas].reverse()),
      models: new Map([...world.models].reverse()),
      routers: new Map([...world.routers].reverse()),
      knownNodes: new Set([...world.knownNodes].reverse()),
    };
    deepEqual(reconcile(reversed, now), plan);
  });
});

Deno.test("reconcile() makes no plan that checkPlan() refuses", () => {
  onEveryPass((world, plan, now) => deepEqual(checkPlan(world, plan, now), []));
});

Deno.test("reconcile() asks for no pass in the past", () => {
  onEveryPass((_world, plan, now) => equal((plan.wakeAt ?? Infinity) > now, true));
});

Deno.test("publish() says nothing new about a world that it has just published", () => {
  onEveryPass((world, plan, now) => {
    const published = publish(record(world, plan, now), now);
    equal(publish(published, now), published);
  });
});

Deno.test("publish() withdraws an endpoint only for a replica that is stopped, failed or lost", () => {
  onEveryPass((world, plan, now) => {
    const after = publish(record(world, plan, now), now);
    for (const id of world.published.endpoints.keys()) {
      if (after.published.endpoints.has(id)) continue;
      const why = after.published.removed.get(id) ??
        (after.replicas.has(id) ? "kept" : "forgotten");
      equal(["stopped", "failed", "lost", "forgotten"].includes(why), true, `${id}: ${why}`);
    }
  });
});

Deno.test("reconcile() asks to be woken before time alone gives it something to do", () => {
  let part = 0;
  onEveryPass((world, plan, now) => {
    const after = publish(record(world, plan, now), now);
    const wakeAt = Math.min(plan.wakeAt ?? Infinity, now + 300_000);
    part = (part + 0.37) % 1;
    for (const at of [Math.floor(now + (wakeAt - 1 - now) * part), wakeAt - 1]) {
      if (at > now) deepEqual(reconcile(after, at).actions, []);
    }
  });
});
