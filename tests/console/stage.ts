/** A whole control with a fleet that follows a script, for a browser to look at. */
import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { bucketOf } from "@heddle/proto/first_content_times";
import type { CommandResult } from "@heddle/proto/gen/agent";
import { connectRpc } from "@heddle/common/rpc_client";
import { encodeAttachedState } from "@heddle/proto/attached_state";
import { AttachService } from "@heddle/proto/gen/attach";
import { RouterService } from "@heddle/proto/gen/router";
import {
  InventorySchema,
  ShardReportSchema,
  type ShardSpec,
  ShardState,
  type ShardStatus,
  ShardStatusSchema,
} from "@heddle/proto/gen/types";
import type { Control } from "../../control/control.ts";
import type { Timings } from "../../control/core/timings.ts";
import { inventory, type NodeShape } from "../../control/core/testing/builders.ts";
import { AgentStream } from "../../control/edge/agent_fake.ts";
import { sha256 } from "../../control/edge/identity/operators.ts";
import { encodePlain } from "../../control/edge/encode_plain.ts";
import { Site } from "../../control/site_fake.ts";
import { eventually } from "../e2e/heddle.ts";

/** Nobody is unreachable in a test that does not say so, and no lease ends. */
const PATIENT = { unreachableMs: 3_600_000, lostMs: 7_200_000, attachLeaseMs: 3_600_000 };

/** What a hostile model or engine would put on an operator's page. */
export const INJECTION = `<img src=x onerror="document.title='owned'"><script>alert(1)</script>`;

export const CATALOG = `
models:
  - name: chat
    aliases: [default]
    source: org/chat
    scaling: {min: 1, max: 4}
    profiles: [{name: h100, engine: vllm, gpu_class: h100-80g, tp: 4}]
  - name: nowhere
    source: org/nowhere
    profiles: [{name: b200, engine: vllm, gpu_class: b200-180g}]
`;

/** Agents say that they are there so often, in ms. */
const HEARTBEAT_MS = 250;

/** One agent: brings up what it is told to start, and stops what it is told to stop. */
export class StageAgent {
  readonly name: string;
  /** What it is told to start ends at once. */
  failing = false;
  readonly #stream: AgentStream;
  readonly #shards = new Map<string, { spec: ShardSpec; status: ShardStatus }>();
  /** Ids of requests for its log that are open. */
  readonly logRequests: string[] = [];
  readonly #unread: (() => void)[] = [];
  readonly #registered = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #run: Promise<void>;
  readonly #heartbeat: ReturnType<typeof setInterval>;

  constructor(name: string, stream: AgentStream, options: {
    readonly shape: NodeShape;
    readonly before: StageAgent | undefined;
    readonly foreign: string | undefined;
  }) {
    this.name = name;
    this.#stream = stream;
    for (const [id, shard] of options.before?.shards ?? []) this.#shards.set(id, shard);
    if (options.foreign !== undefined) this.#adopt(options.foreign);
    this.#register(options.shape);
    this.#run = this.#follow();
    this.#heartbeat = setInterval(
      () => stream.send({ case: "heartbeat", value: {} }),
      HEARTBEAT_MS,
    );
  }

  /** Once it was told to start something. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** Once it was told to stop something. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  /** Resolves once control has taken it in; rejects when it did not. */
  get registered(): Promise<void> {
    return this.#registered.promise;
  }

  get shards(): ReadonlyMap<string, { spec: ShardSpec; status: ShardStatus }> {
    return this.#shards;
  }

  /** What it says of all that runs here, as a leader that is ready, may hang, or does not work. */
  reports(state: ShardState, reason: string, message: string): void {
    for (const { status } of this.#shards.values()) {
      const value = create(ShardStatusSchema, { ...status, state, reason, message });
      this.#stream.send({ case: "shardStatus", value });
    }
  }

  /** Sends lines to everybody who reads its log. */
  say(...lines: string[]): void {
    for (const requestId of this.logRequests) {
      this.#stream.send({ case: "logChunk", value: { requestId, lines } });
    }
  }

  /** Resolves once control has said that nobody reads its log any more. */
  async nobodyReads(): Promise<void> {
    if (this.logRequests.length === 0) return;
    await new Promise<void>((tell) => this.#unread.push(tell));
  }

  async leave(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#stream.abort();
    await this.#run;
  }

  /** A shard of a model that no catalog has. */
  #adopt(model: string): void {
    const id = "left-0-1-0";
    const replicaId = "left-0-1";
    const state = ShardState.READY;
    const gpus = [{ index: 7, uuid: `GPU-${this.name}-7` }];
    const named = { shardId: id, replicaId };
    this.#shards.set(id, {
      spec: create(ShardReportSchema, {
        spec: { ...named, shardCount: 1, model, profile: "p", engine: "vllm", gpus },
      }).spec ?? never(),
      status: create(ShardStatusSchema, { ...named, state, address: "10.0.0.1:20000" }),
    });
  }

  #register(shape: NodeShape): void {
    const own = encodePlain(InventorySchema, inventory(this.name, shape));
    const hurt = own.gpus[3];
    hurt?.problems.push(
      create(InventorySchema, {
        problems: [{
          reason: "ecc_errors",
          detail: `GPU 3 has uncorrected memory errors ${INJECTION}`,
          remedy: "Reset it, or have it replaced",
        }],
      }).problems[0] ?? never(),
    );
    this.#stream.send({
      case: "register",
      value: {
        node: this.name,
        agentVersion: "0.1.0",
        bootId: "boot",
        agentInstance: "one",
        address: "127.0.0.1",
        inventory: own,
        shards: [...this.#shards.values()].map((shard) => create(ShardReportSchema, shard)),
      },
    });
  }

  async #follow(): Promise<void> {
    try {
      for (;;) {
        const { case: kind, value } = await this.#stream.next();
        if (kind === undefined) return;
        if (kind === "registered") this.#registered.resolve();
        if (kind === "startShard") this.#start(value.spec, value.revision);
        if (kind === "stopShard") this.#stop(value.shardId, value.revision);
        if (kind === "readLog") {
          this.logRequests.push(value.requestId);
          this.say(`${this.name} says hello`, INJECTION);
        }
        if (kind === "cancelLog") {
          this.logRequests.splice(this.logRequests.indexOf(value.requestId), 1);
          if (this.logRequests.length === 0) this.#unread.splice(0).forEach((tell) => tell());
        }
      }
    } catch (error) {
      // Control ended the stream, or the test did; once it is registered that is no news.
      this.#registered.reject(error);
    }
  }

  #start(spec: ShardSpec | undefined, revision: CommandResult["revision"]): void {
    if (spec === undefined || revision === undefined) return;
    const { shardId, replicaId, attempt } = spec;
    const status = create(ShardStatusSchema, {
      shardId,
      replicaId,
      attempt,
      revision,
      ...(this.failing ? { state: ShardState.FAILED, reason: "exited" } : {
        state: ShardState.READY,
        pid: 4_711,
        address: "127.0.0.1:20000",
        apiKey: "sk-heddle-0123456789abcdef",
      }),
    });
    this.#shards.set(shardId, { spec, status });
    this.#started.resolve();
    this.#accept(shardId, revision);
    this.#stream.send({ case: "shardStatus", value: status });
  }

  #stop(shardId: string, revision: CommandResult["revision"]): void {
    const shard = this.#shards.get(shardId);
    if (shard === undefined || revision === undefined) return;
    this.#accept(shardId, revision);
    this.#shards.delete(shardId);
    this.#stopped.resolve();
    const status = { ...shard.status, revision, state: ShardState.STOPPED };
    this.#stream.send({ case: "shardStatus", value: create(ShardStatusSchema, status) });
  }

  #accept(shardId: string, revision: NonNullable<CommandResult["revision"]>): void {
    this.#stream.send({ case: "commandResult", value: { revision, shardId, accepted: true } });
  }
}

export interface StageOptions {
  /** For the playground. */
  readonly endpoint?: string;
  /** `drainGraceMs` for drains: no router says here that it has nothing left. */
  readonly timings?: Partial<Timings>;
}

/** Control, its agents, and where a browser finds it. */
export class Stage implements AsyncDisposable {
  readonly site: Site;
  readonly #port = freePort();
  readonly #adminPort = freePort();
  readonly #options: StageOptions;
  readonly agents = new Map<string, StageAgent>();
  #control: Control | undefined;
  #router: Client<typeof RouterService> | undefined;

  private constructor(site: Site, options: StageOptions) {
    this.site = site;
    this.#options = options;
  }

  /** Two nodes on a fabric with eight H100 each, one on its own, and a model that fits nowhere. */
  static async set(options: StageOptions = {}): Promise<Stage> {
    const stage = new Stage(await Site.make(), options);
    await Deno.writeTextFile(`${stage.site.folder}/catalog.yaml`, CATALOG);
    const roles = ["viewer", "operator", "admin"];
    const lines = roles.map(async (role) => `${role}-1 ${role} ${await sha256(`secret-${role}`)}`);
    await Deno.writeTextFile(`${stage.site.folder}/tokens`, (await Promise.all(lines)).join("\n"));
    await stage.start();
    await stage.join("h100-a", { fabric: "ib-a" });
    await stage.join("h100-b", { fabric: "ib-a" });
    // On the fabric, where tests look for it: beside what is left on the other node it would fit better.
    await Promise.race([...stage.agents.values()].map(({ started }) => started));
    await stage.join("alone", { gpus: 8 }, INJECTION);
    return stage;
  }

  /** Where nobody has to log in. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}/console/`;
  }

  /** Where one has to. */
  get securedUrl(): string {
    return `https://127.0.0.1:${this.#adminPort}/console/`;
  }

  async start(): Promise<void> {
    const { endpoint } = this.#options;
    const timings = { ...PATIENT, ...this.#options.timings };
    this.#control = await this.site.start(timings, {
      admin: { host: "127.0.0.1", port: this.#adminPort },
      console: { listen: { host: "127.0.0.1", port: this.#port }, endpoint },
      tokensFile: `${this.site.folder}/tokens`,
      join: { host: "127.0.0.1", port: 0 },
    });
  }

  /** How many consoles control says are open. */
  async consoles(): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.#control?.metrics.port}/metrics`);
    return Number(/^heddle_control_consoles (\d+)$/m.exec(await answer.text())?.[1]);
  }

  /** Waits until so many are open. */
  async consolesAre(count: number): Promise<void> {
    await eventually(`${count} consoles open`, async () => {
      return await this.consoles() === count ? true : undefined;
    });
  }

  /** What a router says that had 100 streams of "chat" since it last said so, two of them slow. */
  async routerReports(): Promise<void> {
    this.#router ??= createClient(
      RouterService,
      this.site.connect("agents", await this.site.issue({ role: "router", name: "r" })),
    );
    const counts = Array<number>(bucketOf(5_000) + 1).fill(0);
    counts[bucketOf(100)] = 98;
    counts[bucketOf(5_000)] = 2;
    await this.#router.report({
      router: "r/1",
      routerInstance: "one",
      applied: { term: 0n, sequence: 0n },
      models: [{
        model: "chat",
        waiting: 4,
        requests: 100,
        firstContent: { counts },
        queued: { gold: 3, bronze: 1 },
        promptCache: { promptTokens: 1_000n, cachedTokens: 750n },
      }],
    });
  }

  /** An engine of the deployment "rented" that something else started, on a box of a provider. */
  async attach(claim: {
    readonly engineId: string;
    readonly provider: string;
    readonly hostId: string;
  }): Promise<void> {
    const { hostId, ...told } = claim;
    const tls = await this.site.issue({ role: "attached", name: "rented" });
    const url = `https://127.0.0.1:${this.#control?.join?.port}`;
    const connection = connectRpc({ url, tls });
    try {
      await createClient(AttachService, connection.transport).claim({
        ...told,
        model: "chat",
        state: encodeAttachedState("serving"),
        nodes: [{ index: 0, hostId, cardsRead: true, cards: [{ uuid: "GPU-1", name: "A6000" }] }],
      });
    } finally {
      connection.close();
    }
  }

  /** Stops control; its agents lose it. */
  async stop(): Promise<void> {
    await this.site.stop();
    for (const agent of this.agents.values()) await agent.leave();
  }

  /** A node joins, or comes back with what runs on it. */
  async join(name: string, shape: NodeShape, foreign?: string): Promise<void> {
    const transport = this.site.connect(
      "agents",
      await this.site.issue({ role: "agent", name }),
    );
    const stream = new AgentStream(transport);
    const before = this.agents.get(name);
    const agent = new StageAgent(name, stream, { shape, before, foreign });
    this.agents.set(name, agent);
    await agent.registered;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.agents.values()) await agent.leave();
    await this.site[Symbol.asyncDispose]();
  }
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  listener.close();
  return listener.addr.port;
}

function never(): never {
  throw new Error("a message that was just made has what it was made with");
}
