/** What control makes of claims: the real core, with a clock that the test moves. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { ToldState } from "@heddle/proto/attached_state";
import { parseCatalog } from "../catalog.ts";
import type { Event } from "../event.ts";
import { observe } from "../observing/observe.ts";
import { matters } from "../observing/matters.ts";
import { publish } from "../publish.ts";
import { reconcile } from "../reconcile.ts";
import { DEFAULT_TIMINGS } from "../timings.ts";
import { viewAttachedNodes, viewAttachedReplicas } from "../views/attached.ts";
import { viewModels } from "../views/models.ts";
import { NO_DECISIONS, startWorld, type World } from "../world.ts";
import { type AttachedClaim, proofSubject, servingMember } from "./attached.ts";
import { claimRefusal } from "./observe.ts";
import { proofDue } from "./publication.ts";

const LEASE_MS = 30_000;
const ID = "rented/e1";
const CATALOG = `models:
  - { name: demo, aliases: [d], source: s, scaling: { min: 0 }, attach: [rented], profiles: [] }
  - { name: any, source: s, attach: ["*"], profiles: [{ name: p, engine: sim }] }
  - { name: closed, source: s, profiles: [{ name: p, engine: sim }] }
`;

function world(now = 0): World {
  const parsed = parseCatalog(CATALOG, "c");
  if (parsed.kind !== "ok") throw new Error("the catalog is wrong");
  return startWorld({
    cluster: "c",
    storedTerm: 0,
    catalog: { catalog: parsed.value, text: CATALOG, revision: 1 },
    knownNodes: new Set<string>(),
    decisions: NO_DECISIONS,
    timings: { ...DEFAULT_TIMINGS, attachLeaseMs: LEASE_MS },
  }, now);
}

function claimed(parts: Partial<AttachedClaim> = {}, from = "10.0.0.9"): Event {
  return {
    kind: "attached_claimed",
    deployment: "rented",
    from,
    claim: {
      engineId: "e1",
      model: "demo",
      provider: "vast",
      endpoint: "",
      enginePort: 8000,
      apiKey: "k",
      state: "serving",
      reason: "",
      message: "",
      nodes: [node(0)],
      agentVersion: "1",
      agentInstance: "a",
      ...parts,
    },
  };
}

const node = (index: number, cards = 0) => ({
  index,
  hostId: "",
  cardsRead: true,
  cards: Array.from({ length: cards }, (_, at) => ({
    uuid: `GPU-${at}`,
    name: "H100",
    gpuClass: "h100-80g",
  })),
});

/** After control has asked the engine. */
function proved(before: World, now: number, outcome = { kind: "ready" as const }): World {
  const engine = before.attached.get(ID);
  const member = engine && servingMember(engine);
  if (member === undefined) throw new Error("it is not attached");
  const subject = proofSubject(member);
  return observe(before, { kind: "attached_proved", engine: ID, subject, outcome }, now);
}

const served = (now: number, parts: Partial<AttachedClaim> = {}) =>
  proved(observe(world(), claimed(parts), now), now);
const endpointAt = (it: World, now: number) => publish(it, now).published.endpoints.get(ID);
const why = (it: World, now: number) => viewAttachedReplicas(it, now)[0]?.reason ?? "";

Deno.test("an attached engine is an endpoint only after control has seen it serve", () => {
  const told = observe(world(), claimed(), 0);
  equal(endpointAt(told, 0), undefined);
  match(why(told, 0), /control has yet to ask 10.0.0.9:8000/);
  ok(proofDue(told, ID, 0) !== undefined);
  const it = proved(told, 0);
  deepEqual(endpointAt(it, 0), {
    replicaId: ID,
    model: "demo",
    address: "10.0.0.9:8000",
    node: "rented/e1/0",
    engine: "attached",
    profile: "attached",
    servedName: "demo",
    apiKey: "k",
    weight: 1,
    priority: 0,
    draining: false,
    pool: "vast/attached",
    gpus: 0,
    degraded: false,
  });
  equal(publish(it, 0).published.models.get("demo")?.reason, "");
  equal(why(it, 0), "");
  equal(proofDue(it, ID, 0), undefined);
});

Deno.test("one that failed control's look is asked again after a while, and says why", () => {
  const told = observe(world(), claimed(), 0);
  const engine = told.attached.get(ID);
  const member = engine && servingMember(engine);
  const it = observe(told, {
    kind: "attached_proved",
    engine: ID,
    subject: member === undefined ? "" : proofSubject(member),
    outcome: { kind: "wrong", reason: "model_not_listed", why: 'it does not list "demo"' },
  }, 0);
  equal(endpointAt(it, 0), undefined);
  match(why(it, 0), /10.0.0.9:8000: it does not list "demo"/);
  equal(proofDue(it, ID, 4_999), undefined);
  ok(proofDue(it, ID, 5_000) !== undefined);
});

Deno.test("what control saw of another address, name or key counts for nothing", () => {
  for (const parts of [{ endpoint: "10.0.0.8:1" }, { model: "d" }, { apiKey: "other" }]) {
    const it = observe(served(0), claimed(parts), 1_000);
    equal(endpointAt(it, 1_000), undefined);
    ok(proofDue(it, ID, 1_000) !== undefined);
  }
});

Deno.test("an agent that restarts costs its engine nothing", () => {
  const it = observe(served(0), claimed({ agentInstance: "b" }), 1_000);
  ok(endpointAt(it, 1_000) !== undefined);
});

Deno.test("it leaves the routers when its lease ends, and at a third it is renewed", () => {
  const it = served(0);
  ok(endpointAt(it, LEASE_MS - 1) !== undefined);
  const after = publish(it, LEASE_MS).published;
  equal(after.endpoints.get(ID), undefined);
  equal(after.removed.get(ID), "lost");
  equal(viewAttachedReplicas(it, LEASE_MS)[0]?.attached?.state, "lost");
  const renewed = observe(it, claimed(), LEASE_MS / 3);
  ok(endpointAt(renewed, LEASE_MS) !== undefined);
  equal(endpointAt(renewed, LEASE_MS * 4 / 3), undefined);
  // The pass that says so is asked for.
  ok((reconcile(it, 0).wakeAt ?? Infinity) <= LEASE_MS);
});

Deno.test("one that was lost is proved anew when it returns, and forgotten when it does not", () => {
  const back = observe(served(0), claimed(), LEASE_MS + 1);
  equal(endpointAt(back, LEASE_MS + 1), undefined);
  ok(endpointAt(proved(back, LEASE_MS + 2), LEASE_MS + 2) !== undefined);
  equal(viewAttachedReplicas(served(0), LEASE_MS + 599_999).length, 1);
  equal(viewAttachedReplicas(served(0), LEASE_MS + 600_000).length, 0);
});

Deno.test("one that is not ready any more leaves, and is proved anew when it is", () => {
  const loading = observe(served(0), claimed({ state: "assembling", message: "loading" }), 1_000);
  equal(publish(loading, 1_000).published.removed.get(ID), "stopped");
  equal(proofDue(loading, ID, 1_000), undefined);
  const again = observe(loading, claimed(), 2_000);
  equal(endpointAt(again, 2_000), undefined);
  ok(proofDue(again, ID, 2_000) !== undefined);
});

Deno.test("a degraded one is asked last, and goes on being one", () => {
  const it = observe(served(0), claimed({ state: "degraded", message: "1 of 2 NVLinks" }), 1_000);
  equal(endpointAt(it, 1_000)?.degraded, true);
  equal(why(it, 1_000), "1 of 2 NVLinks");
});

Deno.test("without an endpoint control fills in the address that it saw, or says so", () => {
  equal(endpointAt(served(0, { endpoint: "10.9.9.9:7" }), 0)?.address, "10.9.9.9:7");
  const { enginePort: _port, ...unknown } = { enginePort: 1 };
  void unknown;
  const event = claimed();
  if (event.kind !== "attached_claimed") throw new Error("not a claim");
  const { enginePort: _gone, ...claim } = event.claim;
  const it = observe(world(), { ...event, claim }, 0);
  match(why(it, 0), /no endpoint: set HEDDLE_ENGINE_ENDPOINT/);
  equal(viewAttachedReplicas(it, 0)[0]?.address, "no endpoint");
  const v6 = observe(world(), claimed({}, "fd00::9"), 0);
  equal(viewAttachedReplicas(v6, 0)[0]?.address, "[fd00::9]:8000");
});

Deno.test("only models that name its deployment take an engine, by name or alias", () => {
  for (
    const [model, words] of [
      ["closed", /takes no engines of deployment "rented"/],
      ["none", /no model "none" in the catalog/],
      ["", /set HEDDLE_ENGINE_MODEL/],
    ] as const
  ) {
    match(why(observe(world(), claimed({ model }), 0), 0), words);
  }
  equal(endpointAt(served(0, { model: "d" }), 0)?.model, "demo");
  equal(endpointAt(served(0, { model: "any" }), 0)?.model, "any");
});

Deno.test("it counts as nothing that is started, stopped or scaled", () => {
  const before = world();
  const it = proved(observe(before, claimed({ model: "any" }), 0), 0);
  const now = 61_000;
  const bare = reconcile(before, now);
  const beside = reconcile(observe(it, claimed({ model: "any" }), now), now);
  deepEqual(
    { actions: beside.actions, waiting: beside.waiting, steps: beside.steps },
    { actions: bare.actions, waiting: bare.waiting, steps: bare.steps },
  );
  const { readyReplicas, attachedEngines } = viewModels(it, 0).find(({ name }) => name === "any") ??
    {};
  deepEqual([readyReplicas, attachedEngines], [0, 1]);
  const [demo] = viewModels(served(0), 0);
  deepEqual([demo?.desiredReplicas, demo?.attachedEngines, demo?.reason], [0, 1, ""]);
  equal(viewModels(world(), 0)[0]?.reason, "no attached engine serves it");
});

Deno.test("a drain of its node takes it from the routers' lists without ending it", () => {
  const drained = observe(
    served(0),
    { kind: "drain", node: "rented/e1/0", by: "ann", reason: "" },
    1,
  );
  equal(endpointAt(drained, 1)?.draining, true);
  equal(viewAttachedReplicas(drained, 1)[0]?.attached?.state, "draining");
  const back = observe(drained, { kind: "uncordon", node: "rented/e1/0", by: "ann" }, 2);
  equal(endpointAt(back, 2)?.draining, false);
});

Deno.test("one agent can speak for several nodes, and several agents for one engine", () => {
  const span = observe(
    world(),
    claimed({ nodes: [node(0, 8), { ...node(1), cardsRead: false }] }),
    0,
  );
  deepEqual(viewAttachedNodes(span, 0).map(({ name, attached }) => [name, attached?.cards]), [
    ["rented/e1/0", 8],
    ["rented/e1/1", undefined],
  ]);
  const two = observe(
    served(0),
    claimed({ nodes: [node(1, 4)], agentInstance: "b" }, "10.0.0.8"),
    0,
  );
  equal(endpointAt(two, 0)?.address, "10.0.0.9:8000");
  equal(endpointAt(two, 0)?.gpus, 4);
  const state = (it: World, now: number) => viewAttachedReplicas(it, now)[0]?.attached?.state;
  const other = (state: ToldState) =>
    observe(two, claimed({ nodes: [node(1)], agentInstance: "b", state }, "10.0.0.8"), 1);
  deepEqual(
    ["serving", "degraded", "assembling"].map((each) => state(other(each as ToldState), 1)),
    [
      "serving",
      "degraded",
      "assembling",
    ],
  );
  // The second agent falls silent: the engine may serve all the same.
  const half = observe(two, claimed(), LEASE_MS - 1);
  equal(state(half, LEASE_MS), "degraded");
  ok(endpointAt(half, LEASE_MS) !== undefined);
});

Deno.test("two agents that call themselves the same are told, and a restarted one is not", () => {
  const first = claimed({ agentInstance: "a" });
  const second = claimed({ agentInstance: "b" });
  const it = observe(observe(world(), first, 0), second, 1);
  if (first.kind !== "attached_claimed" || second.kind !== "attached_claimed") throw new Error();
  equal(claimRefusal(it, second, 2), undefined);
  equal(claimRefusal(it, first, 2)?.reason, "engine_taken");
  equal(observe(it, first, 2), it);
  equal(claimRefusal(it, first, LEASE_MS + 2), undefined);
});

Deno.test("a control that starts says that all is settled only after engines could renew", () => {
  const settled = (it: World, now: number) => publish(it, now).published.settled;
  deepEqual([0, LEASE_MS - 1, LEASE_MS].map((now) => settled(world(), now)), [false, false, true]);
  // One that came back in time and was not asked yet is waited for, but not for ever.
  const told = observe(world(), claimed(), LEASE_MS - 1);
  equal(settled(told, LEASE_MS), false);
  equal(settled(proved(told, LEASE_MS), LEASE_MS), true);
  equal(settled(observe(told, claimed(), 59_000), DEFAULT_TIMINGS.settleMs), true);
  const closed = { ...world(), timings: DEFAULT_TIMINGS };
  equal(settled(closed, 0), true);
});

Deno.test("a control that starts takes no engine from routers that it has yet to ask", () => {
  const told = (at: World, now: number) => publish(at, now).published.removed.get(ID);
  const claims = observe(world(), claimed(), 1);
  equal(told(claims, 1), undefined);
  equal(told(proved(claims, 2), 2), undefined);
  // What it knows to be gone it says.
  equal(told(observe(world(), claimed({ state: "assembling" }), 1), 1), "stopped");
  const moved = observe(proved(claims, 2), claimed({ enginePort: 8001 }), 3);
  equal(told(moved, 3), "stopped");
});

Deno.test("a renewal that changes nothing asks for no pass", () => {
  const it = served(0);
  equal(matters(it, claimed(), 1), false);
  equal(
    matters(it, claimed({ staging: { directory: "/c", bytes: 5n, unavailable: "" } }), 1),
    false,
  );
  equal(matters(it, claimed({ state: "degraded" }), 1), true);
  equal(matters(it, claimed(), LEASE_MS), true);
});
