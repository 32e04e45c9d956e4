import { deepEqual, equal, match } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  GetCatalogResponseSchema,
  GetVersionResponseSchema,
  ModelViewSchema,
  NodeViewSchema,
  ReplicaViewSchema,
  RouterViewSchema,
} from "@heddle/proto/gen/admin";
import { NodeState, ReplicaState, ShardState } from "@heddle/proto/gen/types";
import { createIssuing, createLeaf, createRoot } from "@heddle/common/pki";
import { formatCheck } from "../commands/doctor.ts";
import type { Fleet } from "../status/fleet_status.ts";
import { checkCertificate } from "./certificate.ts";
import { type Check, failed, ok } from "./check.ts";
import { checkClock } from "./clock.ts";
import { checkEndpoint } from "./endpoint.ts";
import { checkFleet } from "./fleet.ts";

const DAY_MS = 24 * 3_600_000;
const NOW = Date.UTC(2026, 5, 1);

async function certificateOf(role: "operator" | "router", validMs: number) {
  const root = await createRoot({ cluster: "lab", validMs: 400 * DAY_MS, now: NOW });
  const issuing = await createIssuing(root, { cluster: "lab", validMs: 300 * DAY_MS, now: NOW });
  const leaf = await createLeaf(issuing, {
    identity: { cluster: "lab", role, name: "ada" },
    hosts: [],
    validMs,
    now: NOW,
  });
  const cert = `${leaf.certificatePem}\n${issuing.certificatePem}`;
  return { cert, key: leaf.keyPem, ca: root.certificatePem };
}

Deno.test("doctor: files that are good by themselves and not of one another", async () => {
  const material = await certificateOf("operator", 30 * DAY_MS);
  const other = await certificateOf("operator", 30 * DAY_MS);
  const mixed = checkCertificate({ ...material, key: other.key }, NOW);
  equal(mixed.state, "failed");
  match(mixed.detail, /operator\/ada: the private key in key_file is not its own$/);
  equal(checkCertificate({ ...material, key: "no key" }, NOW).detail, mixed.detail);
  const prod = await createRoot({ cluster: "prod", validMs: DAY_MS, now: NOW });
  const strange = checkCertificate({ ...material, ca: prod.certificatePem }, NOW);
  match(strange.detail, /it is of cluster lab, and ca_file is of cluster prod$/);
  const both = `${material.ca}\n${prod.certificatePem}`;
  equal(checkCertificate({ ...material, ca: both }, NOW).state, "ok");
});

Deno.test("doctor: a certificate of the cluster that had this name before", async () => {
  const [old, anew] = [
    await certificateOf("operator", 30 * DAY_MS),
    await certificateOf("operator", 30 * DAY_MS),
  ];
  const left = checkCertificate({ ...old, ca: anew.ca }, NOW);
  equal(left.state, "warning");
  match(left.detail, /of no authority in ca_file.* set up anew since\?$/);
  // While one authority takes the place of another, both are trusted.
  equal(checkCertificate({ ...old, ca: `${anew.ca}\n${old.ca}` }, NOW).state, "ok");
  equal(checkCertificate(old, NOW).state, "ok");
});

Deno.test("doctor: a clock that is ahead, behind, or not told", () => {
  const at = (saidAt: number) => checkClock({ askedAt: NOW, answeredAt: NOW + 400, saidAt });
  equal(at(NaN), undefined);
  equal(at(NOW - 900)?.state, "ok");
  equal(at(NOW + 900)?.state, "ok");
  equal(at(NOW + 7_200_400)?.detail, "this machine's is 2h behind control's");
  equal(at(NOW - 90_000)?.detail, "this machine's is 1m30s ahead of control's");
  match(at(NOW - 90_000)?.next ?? "", /NTP/);
  // An answer that took its time says nothing of the clock.
  equal(checkClock({ askedAt: NOW, answeredAt: NOW + 60_000, saidAt: NOW + 30_000 })?.state, "ok");
});

Deno.test("doctor: a certificate that ended, ends soon, or is not an operator's", async () => {
  const material = await certificateOf("operator", 30 * DAY_MS);
  const at = (days: number) => checkCertificate(material, NOW + days * DAY_MS);
  equal(at(1).state, "ok");
  equal(at(20).state, "warning");
  match(at(20).next, /heddle ca sign --role operator/);
  match(at(31).detail, /operator\/ada ended 24h ago|operator\/ada ended 1d ago/);
  equal(at(-1).state, "failed");
  match(at(-1).next, /clock/);
  const router = checkCertificate(await certificateOf("router", DAY_MS), NOW);
  match(router.detail, /is not an operator's/);
});

const EMPTY: Fleet = {
  catalog: create(GetCatalogResponseSchema, { revision: 1n, file: "c.yaml", fileState: "applied" }),
  version: create(GetVersionResponseSchema, { settled: true }),
  nodes: [],
  models: [],
  replicas: [],
  routers: [],
  weights: [],
};

const states = (checks: readonly Check[]) => checks.map(({ name, state }) => `${name} ${state}`);

Deno.test("doctor: an invalid catalog is told with its place, while the old one goes on", () => {
  const catalog = {
    ...EMPTY.catalog,
    fileState: "invalid",
    fileDetail: "c.yaml:3:5: want a name\n",
  };
  const check = checkFleet({ ...EMPTY, catalog }).find(({ name }) => name === "catalog");
  equal(check?.state, "warning");
  match(check?.detail ?? "", /is invalid, revision 1 stays: c\.yaml:3:5: want a name$/);
});

Deno.test("doctor: a fleet without anything, with something, and well", () => {
  deepEqual(states(checkFleet(EMPTY)), [
    "settled ok",
    "catalog ok",
    "nodes failed",
    "routers failed",
    "models failed",
  ]);
  const some: Fleet = {
    ...EMPTY,
    nodes: [
      create(NodeViewSchema, { name: "a", state: NodeState.READY }),
      create(NodeViewSchema, { name: "b", state: NodeState.LOST }),
    ],
    models: [
      create(ModelViewSchema, { name: "m", desiredReplicas: 1, readyReplicas: 1 }),
      create(ModelViewSchema, { name: "n", desiredReplicas: 1, reason: "no room" }),
    ],
    routers: [create(RouterViewSchema, { name: "r", leased: true })],
  };
  deepEqual(states(checkFleet(some)), [
    "settled ok",
    "catalog ok",
    "nodes warning",
    "routers warning",
    "models ok",
    "model n warning",
  ]);
  equal(
    checkFleet(some).map(formatCheck).at(-1),
    "look    model n: 0 of 1 replica ready: no room\n        → heddle explain n\n",
  );
});

Deno.test("doctor: what serves and is not well is told, however many there are", () => {
  const hung = (index: number) =>
    create(ReplicaViewSchema, {
      replicaId: `m-${index}`,
      state: ReplicaState.READY,
      shards: [{
        shardId: `m-${index}/0`,
        node: "a",
        state: ShardState.DEGRADED,
        reason: "engine_hung",
      }],
    });
  const one = checkFleet({ ...EMPTY, replicas: [hung(1)] }).at(-1);
  equal(
    one && formatCheck(one),
    "look    replica m-1: shard m-1/0 on a is degraded: engine_hung\n" +
      "        → heddle logs m-1/0; where it stays: heddle replicas restart m-1\n",
  );
  const many = checkFleet({ ...EMPTY, replicas: Array.from({ length: 30 }, (_, i) => hung(i)) });
  equal(many.filter(({ name }) => name.startsWith("replica ")).length, 12);
  equal(many.at(-1)?.detail, "18 more things to look at");
});

async function withEndpoint(
  answer: (path: string, request: Request) => Response | Promise<Response>,
  test: (url: string) => Promise<void>,
): Promise<void> {
  const handler = (request: Request) => answer(new URL(request.url).pathname, request);
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, handler);
  await test(`http://127.0.0.1:${server.addr.port}`);
}

async function all(url: string, key?: string, model?: string): Promise<readonly Check[]> {
  return await Array.fromAsync(
    checkEndpoint({ base: url, key }, model, new AbortController().signal),
  );
}

const json = (body: unknown, status = 200) => Response.json(body, { status });
const error = (code: string, status: number) => json({ error: { message: "No.", code } }, status);

Deno.test("doctor: an endpoint that serves, by the first way that the model knows", async () => {
  const asked: string[] = [];
  await withEndpoint((path) => {
    asked.push(path);
    if (path === "/v1/models") return json({ data: [{ id: "bert" }] });
    return path === "/v1/embeddings" ? json({}) : error("route_unsupported", 400);
  }, async (url) => deepEqual(states(await all(url)), ["endpoint ok", "token ok"]));
  deepEqual(asked, ["/v1/models", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"]);
});

Deno.test("doctor: an endpoint that wants a key, has no model, fails, or is not there", async () => {
  await withEndpoint(() => error("invalid_api_key", 401), async (url) => {
    const [check, ...more] = await all(url);
    deepEqual([check?.state, more], ["failed", []]);
    match(check?.detail ?? "", /401 invalid_api_key: No\.$/);
    match(check?.next ?? "", /--key-file/);
  });
  await withEndpoint(() => json({ data: [] }), async (url) => {
    deepEqual(states(await all(url)), ["endpoint ok", "token failed"]);
  });
  await withEndpoint(
    (path) =>
      path === "/v1/models"
        ? json({ data: [{ id: "m" }] })
        : new Response("<html>", { status: 502 }),
    async (url) => {
      const [, token] = await all(url, "k", "m");
      match(token?.detail ?? "", /^m answers 502, and not in the API's form$/);
      equal(token?.next, "heddle explain m");
    },
  );
  await withEndpoint(() => json({ surprise: 1 }), async (url) => {
    deepEqual(states(await all(url)), ["endpoint failed"]);
  });
  let there = "";
  await withEndpoint(() => json({}), (url) => {
    there = url;
    return Promise.resolve();
  });
  const [gone] = await all(there);
  equal(gone?.detail, `${there}: tcp connect error: Connection refused`);
});

Deno.test("doctor: what others say moves no cursor and adds no line", () => {
  equal(formatCheck(ok("a", "b\n\x1b[2Jc")), "ok      a: b [2Jc\n");
  equal(formatCheck(failed("a", "b", "c")).split("\n").length, 3);
});
