/** What a drain comes to is said before anybody is asked. */
import { equal, match } from "node:assert/strict";
import { Code, ConnectError } from "@connectrpc/connect";
import { AdminService, type CatalogPlanSchema } from "@heddle/proto/gen/admin";
import { NodeState, ReplicaState } from "@heddle/proto/gen/types";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { withControl } from "./testing/app_fake.ts";

const REPLICAS = [
  { replicaId: "giant-1-1", model: "giant", state: ReplicaState.READY, shards: [{ node: "a" }] },
  { replicaId: "small-1-2", model: "small", state: ReplicaState.READY, shards: [{ node: "a" }] },
  { replicaId: "wide-1-3", model: "wide", state: ReplicaState.READY, shards: [{ node: "a" }] },
  { replicaId: "wide-1-4", model: "wide", state: ReplicaState.READY, shards: [{ node: "b" }] },
];

const PLAN: MessageInitShape<typeof CatalogPlanSchema> = {
  starts: [{ model: "small", profile: "one", nodes: ["b"], replaces: "small-1-2" }],
  stops: REPLICAS.slice(0, 3).map(({ replicaId, model }) => ({
    replicaId,
    model,
    profile: "one",
    nodes: ["a"],
    reason: "node_drain",
  })),
  shortages: [
    { model: "giant", running: 0, wanted: 1, detail: "0/2 nodes fit: 1 gpus_free, 1 draining" },
    { model: "wide", running: 1, wanted: 2, detail: "0/2 nodes fit: 1 gpus_free, 1 draining" },
  ],
  kept: 1,
};

const SAYS = `Would move:
  small-1-2: profile one on a → profile one on b: node_drain
Would stop:
  giant-1-1: profile one on a: node_drain
  wide-1-3: profile one on a: node_drain
Would be short:
  giant: 0 of 1 would run: 0/2 nodes fit: 1 gpus_free, 1 draining
  wide: 1 of 2 would run: 0/2 nodes fit: 1 gpus_free, 1 draining
`;

function control(foreseeDrain: () => { plan: MessageInitShape<typeof CatalogPlanSchema> }) {
  const drained: string[] = [];
  return {
    drained,
    with: (use: Parameters<typeof withControl>[1]) =>
      withControl((router) =>
        router.service(AdminService, {
          listReplicas: () => ({ replicas: REPLICAS }),
          foreseeDrain,
          drain({ node }) {
            drained.push(node);
            return { node: { name: node, state: NodeState.DRAINING, replicaIds: ["wide-1-3"] } };
          },
        }), use),
  };
}

Deno.test("drain: says where each replica goes and which model is left with none, then asks", async () => {
  const { drained, with: withFleet } = control(() => ({ plan: PLAN }));
  await withFleet(async (run) => {
    const asked: string[] = [];
    const ask = (yes: boolean) => (question: string) => {
      asked.push(question);
      return Promise.resolve(yes);
    };
    const refused = await run(["drain", "a"], { ask: ask(false) });
    equal(refused.err, `${SAYS}Not done: it was not confirmed\n`);
    equal(
      asked[0],
      "Drain node a? giant goes to 0 replicas, until there is room elsewhere. " +
        "What runs there stops, also where it finds no other place.",
    );
    const nobody = await run(["nodes", "drain", "a"]);
    match(nobody.err, /Not done: Drain node a\? giant goes to 0 replicas.* say --yes\n$/);
    equal(drained.length, 0);
    const done = await run(["drain", "a"], { ask: ask(true) });
    equal(done.out, "a is draining, 1 replica there; watch it with: heddle nodes\n");
    equal((await run(["drain", "a", "--yes"])).err, "");
    equal(drained.join(), "a,a");
  });
});

Deno.test("drain: a node with nothing on it, and a control that cannot look ahead", async () => {
  const ask = () => Promise.resolve(false);
  await control(() => ({ plan: { kept: 4 } })).with(async (run) => {
    match((await run(["drain", "c"], { ask })).err, /^Nothing runs there\.\nNot done/);
  });
  const older = control(() => {
    throw new ConnectError("no such method", Code.Unimplemented);
  });
  await older.with(async (run) => {
    const asked: string[] = [];
    const { err } = await run(["drain", "a"], {
      ask: (question) => {
        asked.push(question);
        return Promise.resolve(false);
      },
    });
    match(err, /^What it would come to is not known: control is older than this heddle\n/);
    match(asked[0] ?? "", /^Drain node a\? giant, small may go to 0 replicas/);
  });
  const unknown = control(() => {
    throw new ConnectError('there is no node "a"', Code.NotFound);
  });
  await unknown.with(async (run) => {
    equal((await run(["drain", "a"], { ask })).err, 'there is no node "a"\n');
  });
});
