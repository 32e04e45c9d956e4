/** What operators decide about one replica, and that it outlives control and agents. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { Action } from "../plan.ts";
import { catalog } from "../testing/builders.ts";
import { FakeNode, type FakeNodeOptions } from "../testing/fake_node.ts";
import type { Curses } from "../testing/life/curses.ts";
import { Simulation } from "../testing/simulation.ts";
import { viewReplicas } from "../views/replicas.ts";
import type { Replica } from "../world.ts";

const MODEL = {
  name: "m",
  source: "org/w",
  profiles: [{ name: "p", gpu_class: "h100-80g" }],
};

function fleet(model: object = {}, nodes: readonly Partial<FakeNodeOptions>[] = [{}, {}]) {
  const sim = new Simulation({
    seed: 1,
    known: true,
    catalog: catalog({ ...MODEL, ...model }),
    nodes: nodes.map((each, index) =>
      new FakeNode({
        name: `n${index + 1}`,
        shape: { gpus: 8 },
        loadMs: 2_000,
        stopMs: 500,
        ...each,
      })
    ),
  });
  sim.run(20_000);
  return sim;
}

const all = (sim: Simulation): readonly Replica[] => [...sim.world.replicas.values()];

function only(sim: Simulation): Replica {
  const [replica] = all(sim);
  ok(replica !== undefined && all(sim).length === 1, `want one replica, have ${all(sim).length}`);
  return replica;
}

function recorded(sim: Simulation): Action[] {
  const actions: Action[] = [];
  sim.onPass = (_world, plan) => actions.push(...plan.actions);
  return actions;
}

const order = (actions: readonly Action[]) => actions.map(({ kind }) => kind);

const by = "ops";

Deno.test("reconcile() replaces a replica that an operator restarts: the new one is ready first", () => {
  const sim = fleet();
  const old = only(sim);
  const actions = recorded(sim);
  sim.dispatch({ kind: "restart", replica: old.id, by, reason: "leaks" });
  sim.run(1_000);
  const shown = viewReplicas(sim.world, sim.now).find((each) => each.replicaId === old.id);
  equal(shown?.reason, "to be replaced: operator_restart; restart by ops: leaks");
  sim.run(40_000);
  const next = only(sim);
  ok(next.id !== old.id && next.readyAt !== undefined);
  const kinds = order(actions);
  ok(kinds.indexOf("place_replica") < kinds.indexOf("drain_replica"), kinds.join());
  const drained = actions.find((each) => each.kind === "drain_replica");
  ok((next.readyAt ?? Infinity) <= sim.now && drained?.replica === old.id);
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() restarts a replica in its own place where there is no room for a second", () => {
  const sim = fleet({}, [{ shape: { gpus: 1 } }]);
  const old = only(sim);
  const actions = recorded(sim);
  sim.dispatch({ kind: "restart", replica: old.id, by, reason: "" });
  sim.run(60_000);
  ok(only(sim).id !== old.id && only(sim).readyAt !== undefined);
  const drain = actions.find((each) => each.kind === "drain_replica");
  match(drain?.kind === "drain_replica" ? drain.detail : "", /no room for a second copy/);
});

Deno.test("reconcile() keeps a replica to be restarted while a new engine does not start", () => {
  const curses: Curses = { crash: new Set(), slow: new Set(), flaws: new Set() };
  const sim = fleet({}, [{ curses }, { curses }]);
  const old = only(sim);
  curses.crash.add("m");
  sim.dispatch({ kind: "restart", replica: old.id, by, reason: "" });
  sim.run(200_000);
  equal(sim.world.replicas.get(old.id)?.draining, undefined);
  ok(sim.world.published.endpoints.has(old.id));
});

Deno.test("reconcile() drains what an operator stops, and starts another one", () => {
  const sim = fleet();
  const old = only(sim);
  sim.dispatch({ kind: "stop", replica: old.id, by, reason: "" });
  sim.run(1_000);
  equal(sim.world.replicas.get(old.id)?.draining?.reason, "operator_stop");
  sim.run(60_000);
  ok(only(sim).id !== old.id);
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() stops at once what an operator cannot wait for, also while it drains", () => {
  const sim = fleet();
  sim.router.rate = 1;
  sim.run(5_000);
  const old = only(sim);
  ok(sim.router.inFlight(old.id) > 0);
  sim.dispatch({ kind: "stop", replica: old.id, by, reason: "" });
  sim.run(2_000);
  equal(sim.world.replicas.get(old.id)?.stopping, undefined);
  sim.dispatch({ kind: "stop_at_once", replica: old.id, by, reason: "hung" });
  sim.run(500);
  equal(sim.world.replicas.get(old.id)?.stopping?.reason, "operator_stop");
});

Deno.test("reconcile() stops a replica of a paused model, and puts nothing in its place", () => {
  const sim = fleet({ scaling: { min: 2 } });
  sim.dispatch({ kind: "pause", model: "m", by, reason: "" });
  const [first, second] = all(sim);
  ok(first !== undefined && second !== undefined);
  sim.dispatch({ kind: "stop", replica: first.id, by, reason: "" });
  sim.run(60_000);
  equal(only(sim).id, second.id);
});

Deno.test("a decision about a replica outlives control, and is forgotten with the replica", () => {
  const sim = fleet();
  const old = only(sim);
  sim.dispatch({ kind: "stop", replica: old.id, by, reason: "" });
  sim.restartControl();
  equal(sim.world.decisions.replicas.get(old.id)?.kind, "stop");
  sim.run(120_000);
  const next = only(sim);
  ok(next.id !== old.id);
  sim.dispatch({ kind: "restart", replica: next.id, by, reason: "" });
  deepEqual([...sim.world.decisions.replicas.keys()], [next.id]);
});

Deno.test("observe() changes the labels that are named, and leaves the others", () => {
  const sim = fleet();
  const label = (set: Record<string, string>, remove: readonly string[]) =>
    sim.dispatch({ kind: "label", node: "n1", set, remove, by });
  label({ rack: "r1", zone: "z" }, []);
  label({ rack: "r2" }, ["zone", "never"]);
  deepEqual(sim.world.decisions.labels.get("n1"), { rack: "r2" });
  sim.restartAgent("n1");
  sim.run(10_000);
  deepEqual(sim.world.decisions.labels.get("n1"), { rack: "r2" });
  label({}, ["rack"]);
  equal(sim.world.decisions.labels.has("n1"), false);
});
