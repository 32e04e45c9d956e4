import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { Code } from "@connectrpc/connect";
import { adminBench as bench, refused } from "./admin_fake.ts";

Deno.test("AdminService pauses, holds, clears and resumes a model, by name or alias", async () => {
  await using control = await bench();
  const { client } = control;
  const { model: paused } = await client.pauseModel({ model: "default", reason: "audit" });
  deepEqual([paused?.name, paused?.paused], ["demo", true]);
  const { model: held } = await client.scaleModel({ model: "demo", replicas: 3, reason: "launch" });
  deepEqual([held?.heldReplicas, held?.desiredReplicas], [3, 3]);
  equal(held?.scaleReason, "held at 3 by ann: launch");
  const { model: cleared } = await client.clearScale({ model: "demo" });
  deepEqual([cleared?.heldReplicas, cleared?.desiredReplicas], [undefined, 1]);
  equal((await client.resumeModel({ model: "demo" })).model?.paused, false);
  equal((await client.retryModel({ model: "demo" })).model?.failedStarts, 0);
});

Deno.test("AdminService lists what holds, and who decided what", async () => {
  await using control = await bench();
  const { client } = control;
  await client.cordon({ node: "gpu-02", reason: "fan" });
  await client.scaleModel({ model: "demo", replicas: 2, reason: "launch" });
  await client.labelNode({ node: "gpu-01", set: { rack: "r2" } });
  const { decisions } = await client.listDecisions({});
  deepEqual(decisions.map(({ kind, subject, value, by }) => [kind, subject, value, by]), [
    ["cordon", "gpu-02", "", "ann"],
    ["labels", "gpu-01", "rack=r2", ""],
    ["scale", "demo", "2", "ann"],
  ]);
  const { records } = await client.listAudit({ limit: 2 });
  deepEqual(records.map(({ action, subject, reason, by }) => [action, subject, reason, by]), [
    ["label", "gpu-01", "rack=r2", "ann"],
    ["scale", "demo", "2: launch", "ann"],
  ]);
  equal((await client.listAudit({})).records.length, 3);
});

Deno.test("AdminService merges an operator's labels over the node's own", async () => {
  await using control = await bench();
  const { client } = control;
  const { node } = await client.labelNode({ node: "gpu-01", set: { rack: "r9", pool: "a" } });
  deepEqual(node?.inventory?.labels, { rack: "r9", pool: "a" });
  deepEqual(node?.operatorLabels, { rack: "r9", pool: "a" });
  const { node: after } = await client.labelNode({ node: "gpu-01", remove: ["rack"] });
  deepEqual(after?.inventory?.labels, { rack: "r1", pool: "a" });
  const cases: [Parameters<typeof client.labelNode>[0], Code, RegExp][] = [
    [{ node: "gpu-01" }, Code.InvalidArgument, /no label is given/],
    [{ node: "gpu-01", set: { "a b": "c" } }, Code.InvalidArgument, /"a b" is no key/],
    [{ node: "gpu-01", set: { a: "b c" } }, Code.InvalidArgument, /"b c" is no value of a/],
    [{ node: "gpu-01", set: { a: "b" }, remove: ["a"] }, Code.InvalidArgument, /set and removed/],
    [{ node: "gpu-01", remove: ["rack"] }, Code.InvalidArgument, /a label of its own/],
    [{ node: "gpu-01", remove: ["zone"] }, Code.NotFound, /it has no label zone/],
    [{ node: "gpu-1", remove: ["zone"] }, Code.NotFound, /did you mean "gpu-01"/],
  ];
  for (const [request, code, words] of cases) {
    await rejects(client.labelNode(request), refused(code, words));
  }
});

Deno.test("AdminService forgets a lost node, and no other", async () => {
  await using control = await bench();
  const { client } = control;
  const notLost = refused(Code.FailedPrecondition, /"gpu-01": it is ready. Only a lost node/);
  await rejects(client.forgetNode({ node: "gpu-01" }), notLost);
  control.pass(120_000);
  const { replicaIds } = await client.forgetNode({ node: "gpu-02" });
  deepEqual(replicaIds, []);
  deepEqual((await client.listNodes({})).nodes.map(({ name }) => name), ["gpu-01"]);
});

Deno.test("AdminService restarts and stops one replica, and says who wanted it", async () => {
  await using control = await bench();
  const { client } = control;
  const replicaId = control.place();
  const { replica } = await client.restartReplica({ replicaId, reason: "leaks" });
  match(replica?.reason ?? "", /restart by ann: leaks$/);
  const { replica: stopped } = await client.stopReplica({ replicaId, atOnce: true });
  match(stopped?.reason ?? "", /stop at once by ann: no reason given$/);
  await client.pauseModel({ model: "demo" });
  await rejects(
    client.restartReplica({ replicaId }),
    refused(Code.FailedPrecondition, /"demo" is paused by ann, so nothing would take its place/),
  );
  await rejects(
    client.stopReplica({ replicaId: "demo-0-0" }),
    refused(Code.NotFound, /no replica "demo-0-0", did you mean/),
  );
});

Deno.test("AdminService refuses numbers and reasons that can only be mistakes", async () => {
  await using control = await bench();
  const { client } = control;
  await rejects(
    client.scaleModel({ model: "demo", replicas: 20_000 }),
    refused(Code.InvalidArgument, /1000 is the most/),
  );
  await rejects(
    client.pauseModel({ model: "demo", reason: "x".repeat(501) }),
    refused(Code.InvalidArgument, /longer than 500 characters/),
  );
  await rejects(client.pauseModel({ model: "dem" }), refused(Code.NotFound, /did you mean "demo"/));
});

Deno.test("AdminService foresees a drain only of what it knows, and drains nothing by it", async () => {
  await using control = await bench();
  const { client } = control;
  await rejects(client.foreseeDrain({ node: "gpu-O1" }), refused(Code.NotFound, /gpu-01/));
  // One of its nodes has not registered.
  const early = refused(Code.FailedPrecondition, /waits for its nodes/);
  await rejects(client.foreseeDrain({ node: "gpu-01" }), early);
  equal((await client.listDecisions({})).decisions.length, 0);
});
