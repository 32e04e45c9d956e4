import { deepEqual, equal, match } from "node:assert/strict";
import { catalog } from "../testing/builders.ts";
import { FakeNode } from "../testing/fake_node.ts";
import { Simulation } from "../testing/simulation.ts";
import { viewDecisions } from "./decisions.ts";
import { explainModel } from "./explain.ts";
import { viewModels } from "./models.ts";
import { viewNodes } from "./nodes.ts";
import { viewReplicas } from "./replicas.ts";
import { viewRouters } from "./routers.ts";

const small = {
  name: "m",
  aliases: ["em"],
  source: "s",
  profiles: [{
    name: "p",
    gpu_class: "h100-80g",
    tp: 2,
    unsafe_env: true,
    env: { NCCL_ALGO: "Ring" },
  }],
};
const large = {
  name: "huge",
  source: "s",
  profiles: [{ name: "p", gpu_class: "b200-180g", tp: 8 }],
};

function fleet(...models: readonly object[]): Simulation {
  const sim = new Simulation({
    seed: 1,
    known: true,
    nodes: ["n1", "n2"].map((name) =>
      new FakeNode({ name, shape: { gpus: 4 }, loadMs: 1_000, stopMs: 500 })
    ),
    catalog: catalog(...models),
  });
  sim.run(20_000);
  return sim;
}

Deno.test("viewNodes() shows what is held, who decided what, and nodes not heard from", () => {
  const sim = fleet(small);
  sim.dispatch({ kind: "drain", node: "n1", by: "ops", reason: "disk" });
  const world = { ...sim.world, knownNodes: new Set(["n1", "n2", "n9"]) };
  const [first, second, third] = viewNodes(world, sim.now);
  const busy = [first, second].find((node) => (node?.usedGpus.length ?? 0) > 0);
  deepEqual(busy?.usedGpus, [0, 1]);
  deepEqual(busy?.replicaIds, [...world.replicas.keys()]);
  deepEqual(
    [first?.draining, first?.cordoned, first?.decidedBy, first?.decisionReason],
    [true, false, "ops", "disk"],
  );
  equal(first?.state, first?.name === busy?.name ? "draining" : "drained");
  deepEqual([third?.name, third?.state, third?.inventory, third?.lastSeenMs], [
    "n9",
    "unreachable",
    undefined,
    undefined,
  ]);
});

Deno.test("viewModels() says why a model is not as it should be", () => {
  const sim = fleet(small, large);
  const [m, huge] = viewModels(sim.world, sim.now);
  deepEqual(
    [m?.desiredReplicas, m?.readyReplicas, m?.reason, m?.unsafeProfiles, m?.aliases],
    [1, 1, "", ["p"], ["em"]],
  );
  deepEqual([huge?.readyReplicas, huge?.reason], [0, "0/2 nodes fit: 2 gpu_class"]);
  deepEqual(sim.world.published.models.get("huge")?.reason, "0/2 nodes fit: 2 gpu_class");
});

Deno.test("viewModels() shows backoff, an operator's scale, and what left the catalog", () => {
  const sim = fleet(small);
  const [id = ""] = sim.world.replicas.keys();
  for (const node of sim.nodes.values()) node.crash(`${id}-0`, "out_of_memory", sim.now);
  sim.run(1_000);
  const [failed] = viewModels(sim.world, sim.now);
  equal(failed?.failedStarts, 1);
  match(failed?.reason ?? "", /^1 failed start; shard .* out_of_memory$/);
  equal((failed?.backoffMs ?? 0) > 0, true);
  sim.dispatch({ kind: "scale", model: "m", replicas: 1, by: "ops", reason: "" });
  sim.run(30_000);
  equal(viewModels(sim.world, sim.now)[0]?.reason, "held at 1 by ops");
  sim.apply(catalog());
  sim.run(1_000);
  const [left] = viewModels(sim.world, sim.now);
  deepEqual([left?.name, left?.reason], ["m", "it left the catalog and is being stopped"]);
});

Deno.test("viewReplicas() shows state, reason and requests in flight", () => {
  const sim = fleet(small);
  const [replica] = viewReplicas(sim.world, sim.now);
  deepEqual([replica?.state, replica?.reason, replica?.engine], ["ready", "", "vllm"]);
  deepEqual(replica?.shards.map((shard) => [shard.state, shard.gpus]), [["ready", [0, 1]]]);
  equal(typeof replica?.inFlight, "number");
  const node = replica?.shards[0]?.node ?? "";
  sim.silence(node, 200_000);
  sim.run(62_000);
  const lost = viewReplicas(sim.world, sim.now).find((each) =>
    each.replicaId === replica?.replicaId
  );
  deepEqual([lost?.state, lost?.reason], ["failed", `node_lost: ${node} is lost`]);
});

Deno.test("viewRouters() shows who is current and who is not heard from", () => {
  const sim = fleet(small);
  const [router] = viewRouters(sim.world, sim.now);
  deepEqual([router?.name, router?.current, router?.leased], ["router/1", true, true]);
  sim.cutRouter(true);
  sim.run(11_000);
  equal(viewRouters(sim.world, sim.now)[0]?.leased, false);
});

Deno.test("explainModel() answers for a model that is placed, and for one that is not", () => {
  const sim = fleet(small, large);
  const placed = explainModel(sim.world, "m", sim.now);
  equal(placed.summary, "1 placed; for one more: 2/2 nodes fit");
  deepEqual(placed.placements.map((each) => each.replicaId), [...sim.world.replicas.keys()]);
  equal(placed.placements[0]?.scores["nvlink"], 1);
  const not = explainModel(sim.world, "huge", sim.now);
  equal(not.summary, "0/2 nodes fit: 2 gpu_class");
  deepEqual(not.rejections.map((each) => `${each.node} ${each.reason}: ${each.detail}`), [
    "n1 gpu_class: want b200-180g have h100-80g",
    "n2 gpu_class: want b200-180g have h100-80g",
  ]);
  equal(typeof not.lastAttemptMs, "number");
});

Deno.test("viewDecisions() shows every decision that holds, also about what is gone", () => {
  const sim = fleet(small);
  const by = "ops";
  sim.dispatch({ kind: "cordon", node: "n1", by, reason: "xid" });
  sim.dispatch({ kind: "label", node: "n1", set: { rack: "b", zone: "z" }, remove: [], by });
  sim.dispatch({ kind: "pause", model: "m", by, reason: "audit" });
  sim.dispatch({ kind: "scale", model: "m", replicas: 2, by, reason: "launch" });
  sim.apply(catalog(large));
  sim.run(5_000);
  const given = { by, decidedMs: 5_000 };
  deepEqual(viewDecisions(sim.world, sim.now), [
    { ...given, kind: "cordon", subject: "n1", value: "", reason: "xid", orphaned: false },
    { kind: "labels", subject: "n1", value: "rack=b, zone=z", by: "", reason: "", orphaned: false },
    { ...given, kind: "pause", subject: "m", value: "", reason: "audit", orphaned: true },
    { ...given, kind: "scale", subject: "m", value: "2", reason: "launch", orphaned: true },
  ]);
  match(
    explainModel(sim.world, "m", sim.now).summary,
    /^paused by ops: audit; held at 2 by ops; 1 /,
  );
  const [left] = viewModels(sim.world, sim.now).filter((each) => each.name === "m");
  equal(left?.reason, "it left the catalog and is kept: paused by ops: audit");
});

Deno.test("viewModels() says that a model is paused or held, and why it was scaled", () => {
  const sim = fleet({ ...small, scaling: { min: 1, max: 2 } });
  const view = () => viewModels(sim.world, sim.now)[0];
  equal(view()?.scaleReason, "as many as were found running");
  sim.dispatch({ kind: "scale", model: "m", replicas: 2, by: "ops", reason: "launch" });
  sim.dispatch({ kind: "pause", model: "m", by: "ops", reason: "" });
  deepEqual([view()?.heldReplicas, view()?.paused, view()?.scaleReason], [
    2,
    true,
    "held at 2 by ops: launch",
  ]);
});

Deno.test("explainModel() says why a model with room is not started, and what starts it at once", () => {
  const sim = fleet(small);
  const [shard] = [...sim.world.replicas.values()].flatMap((replica) => replica.shards);
  sim.nodes.get(shard?.node ?? "")?.crash(shard?.id ?? "", "exited", sim.now);
  sim.run(1_000);
  match(
    explainModel(sim.world, "m", sim.now).summary,
    /^1 failed start, the next in \S+ or at once with: heddle models retry m; the last: .*exited; 2\/2/,
  );
  sim.dispatch({ kind: "retry", model: "m", by: "ops" });
  match(explainModel(sim.world, "m", sim.now).summary, /^2\/2 nodes fit/);
});
