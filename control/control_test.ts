/** Control as a whole: real listeners, a real store, and agents and routers that follow a script. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { formatAddress } from "@heddle/common/address";
import type { Role } from "@heddle/common/identity";
import { startLogging } from "@heddle/common/log";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { createLeaf, createRoot, type KeyPairPem } from "@heddle/common/pki";
import { connectRpc, type RpcConnection } from "@heddle/common/rpc_client";
import { AdminService } from "@heddle/proto/gen/admin";
import type { StartShard } from "@heddle/proto/gen/agent";
import { EndpointRemovalReason, RouterService } from "@heddle/proto/gen/router";
import {
  InventorySchema,
  NodeState,
  type ShardReport,
  ShardReportSchema,
  ShardState,
  type ShardStatus,
  ShardStatusSchema,
} from "@heddle/proto/gen/types";
import type { Settings } from "./config.ts";
import { type Control, startControl } from "./control.ts";
import { DEFAULT_TIMINGS, type Timings } from "./core/timings.ts";
import { AgentStream, type Fact } from "./edge/agent_fake.ts";
import { FakeRouter } from "./edge/watch/publication_fake.ts";

const CLUSTER = "test";
const HOUR_MS = 3_600_000;
const CATALOG = "models:\n  - {name: demo, source: s, profiles: [{name: p, engine: sim}]}\n";
const KEY = "sk-heddle-0123456789abcdef";

/** A folder with certificates and a catalog, in which control can be started again and again. */
class Site implements AsyncDisposable {
  readonly folder: string;
  readonly #authority: KeyPairPem;
  readonly #connections: RpcConnection[] = [];
  #control: Control | undefined;
  readonly log: string[] = [];

  private constructor(folder: string, authority: KeyPairPem) {
    this.folder = folder;
    this.#authority = authority;
  }

  static async make(): Promise<Site> {
    const authority = await createRoot({ cluster: CLUSTER, validMs: HOUR_MS, now: Date.now() });
    const site = new Site(await Deno.makeTempDir(), authority);
    await startLogging({
      format: "text",
      level: "debug",
      write: (line) => void site.log.push(line),
    });
    const tls = await site.#issue("control", "control");
    await Deno.writeTextFile(`${site.folder}/cert.pem`, tls.cert);
    await Deno.writeTextFile(`${site.folder}/key.pem`, tls.key);
    await Deno.writeTextFile(`${site.folder}/ca.pem`, tls.ca);
    await Deno.writeTextFile(`${site.folder}/catalog.yaml`, CATALOG);
    return site;
  }

  async start(timings: Partial<Timings> = {}): Promise<Control> {
    const anyPort = { host: "127.0.0.1", port: 0 };
    const settings: Settings = {
      cluster: CLUSTER,
      agents: anyPort,
      admin: anyPort,
      metrics: anyPort,
      tls: {
        certificate_file: `${this.folder}/cert.pem`,
        key_file: `${this.folder}/key.pem`,
        ca_file: `${this.folder}/ca.pem`,
      },
      catalogFile: `${this.folder}/catalog.yaml`,
      stateDirectory: `${this.folder}/state`,
      timings: { ...DEFAULT_TIMINGS, ...timings },
    };
    return this.#control = await startControl(settings);
  }

  async stop(): Promise<void> {
    await this.#control?.stop();
    this.#control = undefined;
  }

  async agent(name: string, reports: ShardReport[] = []): Promise<AgentStream> {
    const stream = new AgentStream(await this.#transport("agent", name));
    stream.send(registration(name, reports));
    return stream;
  }

  async router(): Promise<WatchingRouter> {
    return new WatchingRouter(createClient(RouterService, await this.#transport("router", "r")));
  }

  async operator() {
    return createClient(AdminService, await this.#transport("operator", "ann"));
  }

  async #transport(role: Role, name: string) {
    const address = role === "operator" ? this.#control?.admin : this.#control?.agents;
    if (address === undefined) throw new Error("control is not running");
    const tls = await this.#issue(role, name);
    const connection = connectRpc({ url: `https://${formatAddress(address)}`, tls });
    this.#connections.push(connection);
    return connection.transport;
  }

  async #issue(role: Role, name: string): Promise<TlsMaterial> {
    const leaf = await createLeaf(this.#authority, {
      identity: { cluster: CLUSTER, role, name },
      hosts: ["127.0.0.1"],
      validMs: HOUR_MS,
      now: Date.now(),
    });
    return {
      cert: leaf.certificatePem,
      key: leaf.keyPem,
      ca: this.#authority.certificatePem,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.stop();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** A router that folds what it is sent. */
class WatchingRouter extends FakeRouter {
  readonly #leave = new AbortController();
  readonly #stream: AsyncIterator<Parameters<FakeRouter["receive"]>[0]>;
  readonly client: ReturnType<typeof createClient<typeof RouterService>>;

  constructor(client: ReturnType<typeof createClient<typeof RouterService>>) {
    super();
    this.client = client;
    this.#stream = client.watch({ router: "r/1" }, { signal: this.#leave.signal })
      [Symbol.asyncIterator]();
  }

  /** Receives until `done` says that this is it. */
  async until(done: () => boolean): Promise<void> {
    while (!done()) {
      const { value, done: ended } = await this.#stream.next();
      if (ended === true) throw new Error("control ended the watch");
      this.receive(value);
    }
  }

  report() {
    const applied = {
      term: BigInt(this.revision.term),
      sequence: BigInt(this.revision.sequence),
    };
    return this.client.report({ router: "r/1", routerInstance: "i", applied });
  }

  leave(): void {
    this.#leave.abort();
  }
}

function registration(node: string, shards: ShardReport[]): Fact {
  const inventory = create(InventorySchema, {
    hostname: node,
    cpuCount: 8,
    memoryBytes: 2n ** 35n,
    engines: [{ name: "sim", version: "1.0", path: "/opt/sim" }],
    enginesProbed: true,
    enginePortFirst: 20_000,
    enginePortLast: 29_999,
    enginePortBlock: 256,
  });
  const highestRevision = shards[0]?.status?.revision;
  return {
    case: "register",
    value: {
      node,
      bootId: "boot",
      agentInstance: "one",
      address: "127.0.0.1",
      inventory,
      shards,
      ...(highestRevision === undefined ? {} : { highestRevision }),
    },
  };
}

/** What an agent says of the shard that it was told to start. */
function statusOf(command: StartShard, parts: Partial<ShardStatus>): ShardStatus {
  const { revision, spec } = command;
  const status = create(ShardStatusSchema, {
    shardId: spec?.shardId ?? "",
    replicaId: spec?.replicaId ?? "",
    attempt: spec?.attempt ?? 0,
    ...(revision === undefined ? {} : { revision }),
  });
  return Object.assign(status, parts);
}

const READY = {
  state: ShardState.READY,
  pid: 4711,
  address: "127.0.0.1:20000",
  apiKey: KEY,
};

/** Takes a command and brings its shard up. Returns what a registration would report of it. */
async function bringUp(agent: AgentStream): Promise<{ command: StartShard; report: ShardReport }> {
  const command = await agent.expect("startShard");
  const { revision, spec } = command;
  if (revision === undefined || spec === undefined) throw new Error("the command is incomplete");
  const shardId = spec.shardId;
  agent.send({ case: "commandResult", value: { revision, shardId, accepted: true } });
  for (const state of [ShardState.PREPARING, ShardState.STARTING, ShardState.LOADING]) {
    agent.send({ case: "shardStatus", value: statusOf(command, { state }) });
  }
  const status = statusOf(command, READY);
  agent.send({ case: "shardStatus", value: status });
  return { command, report: create(ShardReportSchema, { spec, status }) };
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
  // Commands keep their order: one for the shard would come before this.
  const operator = await site.operator();
  await operator.cordon({ node: "n1", reason: "makes a pass due at once" });
  await operator.uncordon({ node: "n1" });
  const lines = operator.readLogs({ source: { case: "replicaId", value: replicaId } })
    [Symbol.asyncIterator]();
  const line = lines.next();
  const { requestId, source } = await agent.expect("readLog");
  equal(source, command.spec?.shardId);
  agent.send({ case: "logChunk", value: { requestId, lines: ["still here"], end: true } });
  equal((await line).value?.lines[0]?.text, "still here");
  router.leave();
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
  await rejects(agent.next());
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
