/** Puts together what control is told of the node: all of it, or what changes. */
import { create, toJsonString } from "@bufbuild/protobuf";
import { VERSION } from "@heddle/common/version";
import {
  type Heartbeat,
  HeartbeatSchema,
  type Register,
  RegisterSchema,
} from "@heddle/proto/gen/agent";
import {
  type Engine,
  EngineSchema,
  type Gpu,
  type Hca,
  type Inventory,
  type NodeLoad,
  type Problem,
  ProblemSchema,
} from "@heddle/proto/gen/types";
import { type WeightsList, WeightsListSchema } from "@heddle/proto/gen/weights";
import { encodeRevision } from "@heddle/proto/revision";
import { driverOf } from "./core/install/cuda.ts";
import { usersOf } from "./core/weights/users.ts";
import { encodeInstalls, type ToldInstall } from "./edge/session/encode_installs.ts";
import { encodeWeights, type ToldWeights } from "./edge/session/encode_weights.ts";
import { ended } from "./core/shard/shard.ts";
import { encodeNodeLoad } from "./edge/encode_inventory.ts";
import { readHostLoad } from "./edge/hardware/host.ts";
import { encodeLoad, encodeReport, encodeUnreadable } from "./edge/session/encode.ts";
import type { EngineSurvey, EngineVersions } from "./edge/engine/versions.ts";
import type { Discovery } from "./inventory.ts";
import { ProblemLog } from "./supervision/problem_log.ts";
import type { UsageWatch } from "./supervision/usage_watch.ts";
import type { Supervisor } from "./supervisor.ts";

export interface NodeReportOptions {
  readonly node: string;
  readonly bootId: string;
  readonly agentInstance: string;
  /** Where others reach this node. */
  readonly address: string;
  readonly discovery: Discovery;
  readonly engines: EngineVersions;
  readonly supervisor: Supervisor;
  readonly usage: UsageWatch;
  readonly weights: { list(): Promise<readonly ToldWeights[]> };
  readonly installs: { list(): readonly ToldInstall[] };
}

export class NodeReport {
  readonly #options: NodeReportOptions;
  #gpus: ReadonlyMap<number, string> | undefined;
  #gpuFacts: readonly Gpu[] = [];
  #hcaFacts: readonly Hca[] = [];
  #managementInterface = "";
  #driverVersion = "";
  /** The list of weights that was told last, as text. */
  #weightsTold = "";
  #problemReasons: readonly string[] = [];
  readonly #problemLog = new ProblemLog();
  #discoverySeconds = 0;

  constructor(options: NodeReportOptions) {
    this.#options = options;
  }

  /** UUIDs of the GPUs by index as last seen; undefined before the first look. */
  get gpus(): ReadonlyMap<number, string> | undefined {
    return this.#gpus;
  }

  /** The GPUs as last seen. */
  get gpuFacts(): readonly Gpu[] {
    return this.#gpuFacts;
  }

  /** The ports of the adapters as last seen. */
  get hcaFacts(): readonly Hca[] {
    return this.#hcaFacts;
  }

  /** The interface that holds the management address; empty before the first look and behind NAT. */
  get managementInterface(): string {
    return this.#managementInterface;
  }

  /** Reason of each problem that was told last, of the node and of its GPUs and HCAs. */
  get problemReasons(): readonly string[] {
    return this.#problemReasons;
  }

  /** How long the last look at the hardware took. */
  get discoverySeconds(): number {
    return this.#discoverySeconds;
  }

  /** The node's inventory with its engines. Rejects only when `signal` aborts. */
  async inventory(signal: AbortSignal): Promise<Inventory> {
    const begunAt = performance.now();
    const inventory = await this.#options.discovery.inventory(signal);
    this.#discoverySeconds = (performance.now() - begunAt) / 1_000;
    this.#judgeLinks();
    const { survey } = this.#options.engines;
    addEngines(inventory, survey);
    inventory.problems.push(...this.#unreadable());
    this.#see(inventory);
    this.#managementInterface = inventory.managementInterface;
    this.#driverVersion = inventory.driverVersion;
    return inventory;
  }

  /** As driverOf() says. Looks where none was seen. */
  async driverVersion(signal: AbortSignal): Promise<string> {
    return this.#driverVersion === ""
      ? driverOf(await this.inventory(signal))
      : this.#driverVersion;
  }

  async register(signal: AbortSignal): Promise<Register> {
    const { node, bootId, agentInstance, address, supervisor } = this.#options;
    const inventory = await this.inventory(signal);
    inventory.weights = await this.#weights();
    inventory.installs = encodeInstalls(this.#options.installs.list());
    inventory.load = this.#load(inventory.gpus);
    // Nothing is awaited from here on: what the shards are now is what is sent.
    return create(RegisterSchema, {
      node,
      agentVersion: VERSION,
      bootId,
      agentInstance,
      address,
      inventory,
      shards: [
        ...supervisor.statuses().map(({ shard, status }) => encodeReport(shard, status)),
        ...supervisor.unreadable.flatMap(({ spec, why }) =>
          spec === undefined ? [] : encodeUnreadable(spec, why)
        ),
      ],
      highestRevision: encodeRevision(supervisor.highest),
    });
  }

  async heartbeat(signal: AbortSignal): Promise<Heartbeat> {
    const { discovery, supervisor, engines, usage } = this.#options;
    const begunAt = performance.now();
    const looking = discovery.live(signal).finally(() => {
      this.#discoverySeconds = (performance.now() - begunAt) / 1_000;
    });
    const [live] = await Promise.all([looking, supervisor.measure(), usage.refresh(signal)]);
    const weights = await this.#changedWeights();
    this.#judgeLinks();
    const { survey } = engines;
    const problems = [...live.problems, ...encodeProblems(survey), ...this.#unreadable()];
    this.#see({ ...live, problems });
    return create(HeartbeatSchema, {
      gpus: live.gpus,
      hcas: live.hcas,
      fabrics: live.fabrics,
      hardwarePresent: true,
      modelDirs: live.modelDirs,
      modelFiles: live.modelFiles ?? [],
      modelFilesPresent: live.modelFiles !== undefined,
      engines: encodeEngines(survey),
      enginesPresent: survey.probed,
      problems,
      load: this.#load(live.gpus),
      loads: supervisor.statuses()
        .filter(({ status }) => status.address !== "")
        .map(({ shard, status }) => encodeLoad(shard.spec.shardId, status.load)),
      ...(live.memoryBytes === undefined ? {} : { memoryBytes: live.memoryBytes }),
      ...(weights === undefined ? {} : { weights }),
      installs: encodeInstalls(this.#options.installs.list()),
    });
  }

  async #changedWeights(): Promise<WeightsList | undefined> {
    const before = this.#weightsTold;
    const list = await this.#weights();
    return this.#weightsTold === before ? undefined : list;
  }

  async #weights(): Promise<WeightsList> {
    const { weights, supervisor } = this.#options;
    const list = await weights.list();
    const shards = supervisor.statuses().map(({ shard }) => shard);
    const value = create(WeightsListSchema, {
      weights: list.map((each) => encodeWeights(each, usersOf(each.want, shards))),
    });
    this.#weightsTold = toJsonString(WeightsListSchema, value);
    return value;
  }

  #load(gpus: readonly Gpu[]): NodeLoad {
    const { supervisor, usage } = this.#options;
    const shards = supervisor.statuses().filter(({ shard }) => !ended(shard.state));
    return encodeNodeLoad(
      readHostLoad(),
      shards.map(({ shard }) => ({
        shardId: shard.spec.shardId,
        taken: usage.of(shard),
        gpus: shard.spec.gpus.map(({ uuid }) => uuid),
      })),
      gpus,
    );
  }

  // What follows from it is in the report that is being made.
  #judgeLinks(): void {
    const { supervisor, discovery } = this.#options;
    supervisor.judgeLinks(discovery.links());
  }

  #see(
    seen: {
      readonly gpus: readonly Gpu[];
      readonly hcas: readonly Hca[];
      readonly problems: readonly Problem[];
    },
  ): void {
    this.#gpuFacts = seen.gpus;
    this.#hcaFacts = seen.hcas;
    this.#gpus = new Map(seen.gpus.map(({ index, uuid }) => [index, uuid]));
    this.#problemLog.tell([
      { part: "node", problems: seen.problems },
      ...seen.gpus.map(({ index, problems }) => ({ part: `GPU ${index}`, problems })),
      ...seen.hcas.map(({ name, port, problems }) => ({ part: `${name}:${port}`, problems })),
    ]);
    this.#problemReasons = [seen, ...seen.gpus, ...seen.hcas]
      .flatMap(({ problems }) => problems.map(({ reason }) => reason));
  }

  #unreadable(): Problem[] {
    const { unreadable, corrupt } = this.#options.supervisor;
    const lost = corrupt.map(({ shardId, why, kept }) =>
      create(ProblemSchema, {
        reason: "state_corrupt",
        detail:
          `The state of shard ${shardId} could not be read when the agent started (${why}): ` +
          `what ran of it was stopped, and what is left lies in ${kept}`,
        remedy: "See whether the disk is well; the agent's next start says no more of it",
      })
    );
    const newer = unreadable.map(({ shardId, why }) =>
      create(ProblemSchema, {
        reason: "state_unreadable",
        detail: `Shard ${shardId} is kept as it is: its state on disk cannot be read: ${why}`,
        remedy: "Upgrade the agent, or stop the node's engines with --stop-engines yes",
      })
    );
    return [...newer, ...lost];
  }
}

/** Adds what a survey of the engines found. */
export function addEngines(inventory: Inventory, survey: EngineSurvey): void {
  inventory.engines = encodeEngines(survey);
  inventory.enginesProbed = survey.probed;
  inventory.problems.push(...encodeProblems(survey));
}

function encodeEngines({ engines }: EngineSurvey): Engine[] {
  return engines.map((engine) => create(EngineSchema, { ...engine }));
}

function encodeProblems({ problems }: EngineSurvey): Problem[] {
  return problems.map((problem) => create(ProblemSchema, { ...problem }));
}
