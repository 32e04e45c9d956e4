import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { Code, createClient } from "@connectrpc/connect";
import { AdminService } from "@heddle/proto/gen/admin";
import { NodeState } from "@heddle/proto/gen/types";
import { connectRpc } from "@heddle/common/rpc_client";
import { startRpcServer } from "@heddle/common/rpc_server";
import { adminBench as bench, fakeAdmin as admin, refused } from "./admin_fake.ts";

Deno.test("AdminService lists nodes, also one that has not been heard from yet", async () => {
  await using control = await bench();
  const { nodes } = await control.client.listNodes({});
  deepEqual(nodes.map(({ name, address, lastSeenMs }) => [name, address, lastSeenMs]), [
    ["gpu-01", "10.0.0.1", 500n],
    ["gpu-02", "", undefined],
  ]);
  deepEqual(nodes[0]?.inventory?.labels, { rack: "r1" });
  const version = await control.client.getVersion({});
  deepEqual([version.term, version.cluster, version.settled], [5n, "test", false]);
  deepEqual((await control.client.listReplicas({})).replicas, []);
  deepEqual((await control.client.listRouters({})).routers, []);
});

Deno.test("AdminService records who cordons, drains and uncordons, and why", async () => {
  await using control = await bench();
  const { client } = control;
  const { node: cordoned } = await client.cordon({ node: "gpu-01", reason: "fan" });
  deepEqual(
    [cordoned?.state, cordoned?.cordoned, cordoned?.decidedBy, cordoned?.decisionReason],
    [NodeState.CORDONED, true, "ann", "fan"],
  );
  const { node: drained } = await client.drain({ node: "gpu-01" });
  deepEqual([drained?.state, drained?.draining], [NodeState.DRAINED, true]);
  const { node: back } = await client.uncordon({ node: "gpu-01" });
  deepEqual([back?.state, back?.cordoned, back?.draining], [NodeState.READY, false, false]);
  // Known, but silent since control has started: a decision about it is possible all the same.
  equal((await client.cordon({ node: "gpu-02" })).node?.cordoned, true);
});

Deno.test("AdminService says what exists when asked for what does not", async () => {
  await using control = await bench();
  const { client } = control;
  const cases: [() => Promise<unknown>, RegExp][] = [
    [() => client.cordon({ node: "gpu-1" }), /no node "gpu-1", did you mean "gpu-01"\?/],
    [() => client.uncordon({ node: "x" }), /no node "x". Known: gpu-01, gpu-02/],
    [() => client.drain({ node: "" }), /no node "". Known/],
    [() => client.explain({ model: "dem" }), /no model "dem", did you mean "demo"\?/],
    [() => client.listReplicas({ model: "defalt" }), /did you mean "default"\?/],
  ];
  for (const [call, words] of cases) await rejects(call(), refused(Code.NotFound, words));
  await rejects(
    client.cordon({ node: "gpu-01", reason: "x".repeat(501) }),
    refused(Code.InvalidArgument, /longer than 500 characters/),
  );
});

Deno.test("AdminService explains a model by name and by alias", async () => {
  await using control = await bench();
  const byAlias = await control.client.explain({ model: "default" });
  equal(byAlias.model, "demo");
  match(byAlias.summary, /nodes fit/);
  const { models } = await control.client.listModels({});
  deepEqual(
    models.map(({ name, minReplicas, readyReplicas }) => [name, minReplicas, readyReplicas]),
    [
      ["demo", 1, 0],
    ],
  );
  equal(models[0]?.reason !== "", true);
});

Deno.test("AdminService gives an agent's log lines and cancels when the operator leaves", async () => {
  await using control = await bench();
  const leave = new AbortController();
  const stream = control.client.readLogs(
    { source: { case: "node", value: "gpu-01" }, tailLines: 5, follow: true },
    { signal: leave.signal },
  )[Symbol.asyncIterator]();
  const first = stream.next();
  const { value: asked } = await control.sent.next();
  equal(asked?.case, "readLog");
  if (asked?.case !== "readLog") return;
  deepEqual([asked.value.source, asked.value.tailLines, asked.value.follow], ["agent", 5, true]);
  control.logs.accept("gpu-01", {
    $typeName: "heddle.v1.LogChunk",
    requestId: asked.value.requestId ?? "",
    lines: ["a", "b"],
    end: false,
    error: "",
  });
  deepEqual(
    (await first).value?.lines.map(({ source, text }: { source: string; text: string }) => [
      source,
      text,
    ]),
    [["gpu-01", "a"], ["gpu-01", "b"]],
  );
  leave.abort();
  await rejects(stream.next());
  equal((await control.sent.next()).value?.case, "cancelLog");
});

Deno.test("AdminService.ReadLogs asks a node for the source that is named", async () => {
  await using control = await bench();
  const leave = new AbortController();
  const stream = control.client.readLogs(
    { source: { case: "node", value: "gpu-01" }, nodeSource: "sources" },
    { signal: leave.signal },
  )[Symbol.asyncIterator]();
  const first = stream.next();
  const { value: asked } = await control.sent.next();
  equal(asked?.case === "readLog" && asked.value.source, "sources");
  leave.abort();
  await rejects(first);
  equal((await control.sent.next()).value?.case, "cancelLog");
});

Deno.test("AdminService.ReadLogs refuses what it cannot find", async () => {
  await using control = await bench();
  const read = async (source: Parameters<typeof control.client.readLogs>[0]) => {
    for await (const _ of control.client.readLogs(source)) return;
  };
  const cases: [Parameters<typeof read>[0], Code, RegExp][] = [
    [{ source: { case: "node", value: "gpu-02" } }, Code.NotFound, /did you mean "gpu-01"/],
    [{ source: { case: "shardId", value: "s" } }, Code.NotFound, /no shard "s"/],
    [{ source: { case: "replicaId", value: "r" } }, Code.NotFound, /no replica "r"/],
    [{}, Code.InvalidArgument, /names no replica, shard or node/],
    [{ tailLines: 20_000 }, Code.InvalidArgument, /10000 at most/],
  ];
  for (const [request, code, words] of cases) await rejects(read(request), refused(code, words));
});

Deno.test("AdminService is for operators of this cluster only", async () => {
  await using control = await bench();
  const { listener } = control;
  for (
    const [transport, words] of [
      [await listener.connect("agent", "gpu-01"), /role agent, want operator/],
      [await listener.connect("router", "a"), /role router, want operator/],
      [await listener.connect("operator", "ann", "other"), /of cluster "test"/],
    ] as const
  ) {
    const client = createClient(AdminService, transport);
    await rejects(client.listNodes({}), refused(Code.PermissionDenied, words));
    await rejects(client.cordon({ node: "gpu-01" }), refused(Code.PermissionDenied, words));
  }
  await rejects(createClient(AdminService, listener.connectBare()).getVersion({}));
});

Deno.test("AdminService on plaintext loopback records decisions as local", async () => {
  const { handlers } = admin(false);
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    routes: (router) => router.service(AdminService, handlers),
  });
  const connection = connectRpc({ url: `http://127.0.0.1:${server.address.port}`, tls: undefined });
  try {
    const client = createClient(AdminService, connection.transport);
    equal((await client.cordon({ node: "gpu-01" })).node?.decidedBy, "local");
  } finally {
    connection.close();
    await server.close(1_000);
  }
});

Deno.test("AdminService shows the catalog, and what is wrong with its file", async () => {
  await using control = await bench();
  const { revision, models, text, file, fileState, fileDetail } = await control.client.getCatalog(
    {},
  );
  deepEqual([revision, models, text, file, fileState], [1n, 1, "", "/c.yaml", "invalid"]);
  equal(fileDetail, "/c.yaml:1:1: no");
  match((await control.client.getCatalog({ text: true })).text, /name: demo/);
});
