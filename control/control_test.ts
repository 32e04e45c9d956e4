/** Control as a whole: real listeners, a real store, and agents and routers that follow a script. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { formatAddress } from "@heddle/common/address";
import { EndpointRemovalReason } from "@heddle/proto/gen/router";
import { NodeState, RevisionSchema, ShardReportSchema } from "@heddle/proto/gen/types";
import type { AgentStream } from "./edge/agent_fake.ts";
import { bringUp, CATALOG, KEY, Site } from "./site_fake.ts";

/** Makes a pass due and checks that it sends nothing. Commands keep their order, so a request for
 * log lines that is made afterwards would come after them. */
async function nothingButLogs(site: Site, agent: AgentStream): Promise<void> {
  const operator = await site.operator();
  await operator.cordon({ node: "n1", reason: "makes a pass due at once" });
  await operator.uncordon({ node: "n1" });
  const lines = operator.readLogs({ source: { case: "node", value: "n1" } });
  const line = lines[Symbol.asyncIterator]().next();
  const { requestId, source } = await agent.expect("readLog");
  equal(source, "agent");
  agent.send({ case: "logChunk", value: { requestId, lines: ["still here"], end: true } });
  equal((await line).value?.lines[0]?.text, "still here");
}

Deno.test("control places a model, and its endpoint reaches routers with its key", async () => {
  await using site = await Site.make();
  await site.start();
  const router = await site.router();
  await router.until(() => router.models.has("demo"));
  equal(router.endpoints.size, 0);
  equal(router.models.get("demo")?.reason !== "", true, "it says why there is no endpoint");
  const agent = await site.agent("n1");
  const registered = await agent.expect("registered");
  deepEqual([registered.term, registered.heartbeatIntervalMs], [1n, 5_000]);
  const { command } = await bringUp(agent);
  equal(command.revision?.term, 1n);
  equal(command.spec?.model, "demo");
  await router.until(() => router.endpoints.size === 1);
  const [endpoint] = router.endpoints.values();
  deepEqual([endpoint?.model, endpoint?.address, endpoint?.apiKey], [
    "demo",
    "127.0.0.1:20000",
    KEY,
  ]);
  await router.report();
  const operator = await site.operator();
  const { replicas } = await operator.listReplicas({ model: "demo" });
  deepEqual(replicas.map(({ replicaId }) => replicaId), [endpoint?.replicaId]);
  const { routers } = await operator.listRouters({});
  deepEqual(routers.map(({ name, current, leased }) => [name, current, leased]), [
    ["r/1", true, true],
  ]);
  equal((await router.client.wake({ router: "r/1", model: "demo" })).reason, "already_running");
  equal(site.log.join("").includes(KEY), false, "the key is in no log, whatever its level");
  router.leave();
  agent.abort();
});

Deno.test("control restarted on its store restarts nothing and serves the same endpoint", async () => {
  await using site = await Site.make();
  await site.start();
  const before = await site.agent("n1");
  await before.expect("registered");
  const { command, report } = await bringUp(before);
  const watching = await site.router();
  await watching.until(() => watching.endpoints.size === 1);
  const replicaId = command.spec?.replicaId ?? "";
  const toldWhy = (error: unknown) => /Control stops/.test(ConnectError.from(error).rawMessage);
  const ends = [
    rejects(before.next(), toldWhy),
    rejects(watching.until(() => false), toldWhy),
  ];
  await site.stop();
  await Promise.all(ends);

  await site.start();
  const router = await site.router();
  await router.until(() => router.models.has("demo"));
  deepEqual([router.settled, router.endpoints.size], [false, 0], "it has not heard from n1 yet");
  const agent = await site.agent("n1", [report]);
  const registered = await agent.expect("registered");
  deepEqual([registered.term, registered.shardIds], [2n, [command.spec?.shardId]]);
  await router.until(() => router.endpoints.has(replicaId) && router.settled);
  equal(router.revision.term, 2);
  deepEqual(router.removals, []);
  equal(router.endpoints.get(replicaId)?.apiKey, KEY);
  await nothingButLogs(site, agent);
  router.leave();
  agent.abort();
});

Deno.test("control that lost its store stops nothing while it has no catalog, and adopts with one", async () => {
  await using site = await Site.make();
  await site.start();
  const before = await site.agent("n1");
  await before.expect("registered");
  const { command, report } = await bringUp(before);
  await site.stop();
  await Deno.remove(`${site.folder}/state`, { recursive: true });
  await Deno.remove(`${site.folder}/catalog.yaml`);

  const control = await site.start();
  const replicaId = command.spec?.replicaId ?? "";
  const router = await site.router();
  const agent = await site.agent("n1", [report]);
  deepEqual((await agent.expect("registered")).shardIds, [command.spec?.shardId]);
  await router.until(() => router.endpoints.has(replicaId));
  await nothingButLogs(site, agent);
  await Deno.writeTextFile(`${site.folder}/catalog.yaml`, CATALOG);
  await control.reload();
  await router.until(() => router.models.has("demo"));
  await nothingButLogs(site, agent);
  deepEqual([router.removals, router.endpoints.get(replicaId)?.draining], [[], false]);
  router.leave();
  agent.abort();
});

Deno.test("control starts above the highest term that an agent has seen, also after a restored backup", async () => {
  await using site = await Site.make();
  await site.start();
  const before = await site.agent("n1");
  await before.expect("registered");
  const { report } = await bringUp(before);
  await site.stop();
  await Deno.remove(`${site.folder}/state`, { recursive: true });
  const revision = create(RevisionSchema, { term: 40n, sequence: 3n });
  const { spec, status } = report;
  if (spec === undefined || status === undefined) throw new Error("the report is incomplete");
  await site.start();
  const agent = await site.agent("n1", [
    create(ShardReportSchema, { spec, status: { ...status, revision } }),
  ]);
  equal((await agent.expect("registered")).term, 41n);
  await site.stop();
  await site.start();
  equal((await (await site.operator()).getVersion({})).term, 42n);
  agent.abort();
});

Deno.test("control rebuilds elsewhere what ran on a node that is lost", async () => {
  await using site = await Site.make();
  await site.start({ unreachableMs: 1_000, lostMs: 2_500 });
  const router = await site.router();
  const doomed = await site.agent("n1");
  await doomed.expect("registered");
  const { command } = await bringUp(doomed);
  await router.until(() => router.endpoints.size === 1);
  const other = await site.agent("n2");
  await other.expect("registered");
  const beat = setInterval(() => other.send({ case: "heartbeat", value: {} }), 100);
  doomed.abort();
  const { command: again } = await bringUp(other);
  equal(again.spec?.replicaId === command.spec?.replicaId, false);
  await router.until(() => [...router.endpoints.values()].some(({ node }) => node === "n2"));
  deepEqual(router.removals, [[command.spec?.replicaId, EndpointRemovalReason.LOST]]);
  equal(router.endpoints.size, 1);
  const { nodes } = await (await site.operator()).listNodes({});
  deepEqual(nodes.map(({ name, state }) => [name, state]), [
    ["n1", NodeState.LOST],
    ["n2", NodeState.READY],
  ]);
  clearInterval(beat);
  router.leave();
  other.abort();
});

Deno.test("control keeps a cordon, and who said so, over a restart", async () => {
  await using site = await Site.make();
  await site.start();
  const agent = await site.agent("n1");
  await agent.expect("registered");
  await (await site.operator()).cordon({ node: "n1", reason: "fan" });
  await site.stop();
  await rejects(async () => {
    for (;;) await agent.next();
  });
  await site.start();
  const { nodes } = await (await site.operator()).listNodes({});
  deepEqual(
    nodes.map(({ name, cordoned, decidedBy, decisionReason, lastSeenMs }) => ({
      name,
      cordoned,
      decidedBy,
      decisionReason,
      lastSeenMs,
    })),
    [{
      name: "n1",
      cordoned: true,
      decidedBy: "ann",
      decisionReason: "fan",
      lastSeenMs: undefined,
    }],
  );
});

Deno.test("control acts on the stored catalog while the file is invalid, and says so in metrics", async () => {
  await using site = await Site.make();
  await site.start();
  await site.stop();
  await Deno.writeTextFile(`${site.folder}/catalog.yaml`, "models: [");
  const control = await site.start();
  const { models } = await (await site.operator()).listModels({});
  deepEqual(models.map(({ name }) => name), ["demo"]);
  const url = `http://${formatAddress(control.metrics)}`;
  const metrics = await (await fetch(`${url}/metrics`)).text();
  match(metrics, /heddle_control_catalog_file\{state="invalid"\} 1/);
  match(metrics, /heddle_control_term 2/);
  equal((await fetch(`${url}/ready`).then((answer) => answer.text())).trim(), "ready");
});

Deno.test("control refuses to start when the store is in use, and leaves nothing open", async () => {
  await using site = await Site.make();
  await site.start();
  await rejects(site.start(), /another control uses it/);
});

Deno.test("control reloads its certificate without cutting streams", async () => {
  await using site = await Site.make();
  const control = await site.start();
  const agent = await site.agent("n1");
  await agent.expect("registered");
  await control.reload();
  await bringUp(agent);
  const late = await site.agent("n2");
  await late.expect("registered");
  await Deno.writeTextFile(`${site.folder}/cert.pem`, "not a certificate");
  await control.reload();
  match(site.log.join(""), /Cannot read the certificate again; the one before stays/);
  const later = await site.agent("n3");
  await later.expect("registered");
  for (const each of [agent, late, later]) each.abort();
});

Deno.test("control acts on what an operator applied, also after a restart, until the file changes", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.operator();
  const applied = `${CATALOG}  - {name: more, source: s, profiles: [{name: p, engine: sim}]}\n`;
  const names = async (from = operator) =>
    (await from.listModels({})).models.map(({ name }) => name);
  deepEqual(await operator.applyCatalog({ text: applied, file: "mine.yaml" }), {
    $typeName: "heddle.v1.ApplyCatalogResponse",
    applied: true,
    revision: 2n,
    waitReason: "",
    waitDetail: "",
  });
  deepEqual(await names(), ["demo", "more"]);
  await site.stop();
  const control = await site.start();
  const again = await site.operator();
  await control.reload();
  deepEqual(await names(again), ["demo", "more"], "the file is as it was before");
  match(site.log.join(""), /Decided: apply.*subject=catalog.*by=ann/);
  match(site.log.join(""), /The catalog file is older than the catalog that is acted on/);
  await Deno.writeTextFile(`${site.folder}/catalog.yaml`, `${CATALOG}# changed\n`);
  await control.reload();
  deepEqual(await names(again), ["demo"]);
});

Deno.test("nodes hear which engines they are to have when they register, and when that changes", async () => {
  await using site = await Site.make();
  const engine = { name: "llamacpp", releases: "https://r", index: "", packages: [] };
  const control = await site.start({}, { engines: [{ ...engine, version: "b1" }] });
  const agent = await site.agent("n1");
  const versions = async () =>
    (await agent.expect("registered")).engines?.engines.map(({ version }) => version);
  deepEqual(await versions(), ["b1"]);
  await agent.expect("startShard");
  await control.reload([{ ...engine, version: "b2" }]);
  deepEqual(await versions(), ["b2"]);
  await control.reload([]);
  deepEqual(await versions(), []);
  // Nothing said is not nothing wanted.
  await control.reload();
  deepEqual(await versions(), undefined);
  agent.abort();
});
