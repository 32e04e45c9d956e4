/** A whole control for tests: a folder with certificates and a catalog, agents and routers that follow
 * a script. */
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { formatAddress } from "@heddle/common/address";
import type { Role } from "@heddle/common/identity";
import { startLogging } from "@heddle/common/log";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { createLeaf, createRoot, type KeyPairPem } from "@heddle/common/pki";
import { connectRpc, type RpcConnection } from "@heddle/common/rpc_client";
import { AdminService } from "@heddle/proto/gen/admin";
import type { StartShard } from "@heddle/proto/gen/agent";
import { RouterService } from "@heddle/proto/gen/router";
import { TenancyService } from "@heddle/proto/gen/tenancy";
import {
  InventorySchema,
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
export const CATALOG = "models:\n  - {name: demo, source: s, profiles: [{name: p, engine: sim}]}\n";
export const KEY = "sk-heddle-0123456789abcdef";

/** A folder with certificates and a catalog, in which control can be started again and again. */
export class Site implements AsyncDisposable {
  readonly folder: string;
  readonly #authority: KeyPairPem;
  readonly #connections: RpcConnection[] = [];
  /** Those that run, the newest last. */
  readonly #controls: Control[] = [];
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
    const tls = await site.issue({ role: "control", name: "control" });
    await Deno.writeTextFile(`${site.folder}/cert.pem`, tls.cert);
    await Deno.writeTextFile(`${site.folder}/key.pem`, tls.key);
    await Deno.writeTextFile(`${site.folder}/ca.pem`, tls.ca);
    await Deno.writeTextFile(`${site.folder}/catalog.yaml`, CATALOG);
    return site;
  }

  /** Starts a control. Later calls without a `control` mean this one. */
  async start(timings: Partial<Timings> = {}, parts: Partial<Settings> = {}): Promise<Control> {
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
      metricsTls: undefined,
      console: { listen: undefined, endpoint: undefined },
      tokensFile: undefined,
      issuing: undefined,
      name: "control",
      catalogFile: `${this.folder}/catalog.yaml`,
      stateDirectory: `${this.folder}/state`,
      postgres: undefined,
      usage: { timeZone: "UTC", keepRecordsMs: HOUR_MS, keepHoursMs: 24 * HOUR_MS },
      leaseMs: 10_000,
      timings: { ...DEFAULT_TIMINGS, ...timings },
      ...parts,
    };
    const control = await startControl(settings);
    this.#controls.push(control);
    return control;
  }

  async stop(control = this.#controls.at(-1)): Promise<void> {
    if (control === undefined) return;
    this.#controls.splice(this.#controls.indexOf(control), 1);
    await control.stop();
  }

  async agent(
    name: string,
    reports: ShardReport[] = [],
    control?: Control,
  ): Promise<AgentStream> {
    const stream = new AgentStream(await this.#transport("agent", name, control));
    stream.send(registration(name, reports));
    return stream;
  }

  async router(control?: Control): Promise<WatchingRouter> {
    const transport = await this.#transport("router", "r", control);
    return new WatchingRouter(createClient(RouterService, transport));
  }

  async operator(control?: Control) {
    return createClient(AdminService, await this.#transport("operator", "ann", control));
  }

  async tenancy(control?: Control) {
    return createClient(TenancyService, await this.#transport("operator", "ann", control));
  }

  async #transport(role: Role, name: string, control = this.#controls.at(-1)) {
    const listener = role === "operator" ? "admin" : "agents";
    return this.connect(listener, await this.issue({ role, name }), control);
  }

  /** A connection that shows this certificate; closed with the site. */
  connect(listener: "admin" | "agents", tls: TlsMaterial, control = this.#controls.at(-1)) {
    const address = control?.[listener];
    if (address === undefined) throw new Error("control is not running");
    const connection = connectRpc({ url: `https://${formatAddress(address)}`, tls });
    this.#connections.push(connection);
    return connection.transport;
  }

  /** A certificate of this site's authority, or of another that the site does not know. */
  async issue(
    { role, name, cluster = CLUSTER, validMs = HOUR_MS, authority = this.#authority }: {
      readonly role: Role;
      readonly name: string;
      readonly cluster?: string;
      readonly validMs?: number;
      readonly authority?: KeyPairPem;
    },
  ): Promise<TlsMaterial> {
    const leaf = await createLeaf(authority, {
      identity: { cluster, role, name },
      hosts: ["127.0.0.1"],
      validMs,
      now: Date.now(),
    });
    return { cert: leaf.certificatePem, key: leaf.keyPem, ca: this.#authority.certificatePem };
  }

  /** The site's own authority, for those that it signs. */
  get authority(): KeyPairPem {
    return this.#authority;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    while (this.#controls.length > 0) await this.stop();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** A router that folds what it is sent. */
export class WatchingRouter extends FakeRouter {
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
export async function bringUp(
  agent: AgentStream,
): Promise<{ command: StartShard; report: ShardReport }> {
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
