/** The agent's parts, put together for one node. */
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import type { DenyListCopy } from "@heddle/common/deny_list";
import { logger } from "@heddle/common/log";
import type { ProgramMetrics } from "@heddle/common/metrics";
import { readTlsFiles } from "@heddle/common/mtls_files";
import { keepRenewed } from "@heddle/common/renewal";
import { connectRpc } from "@heddle/common/rpc_client";
import { delay, spawnTask } from "@heddle/common/task";
import { Commands } from "./commands.ts";
import { adoptReadyMs, type Config, controlUrls, type EngineConfig } from "./config.ts";
import { EngineVersions, PROBE_SECONDS_MAX } from "./edge/engine/versions.ts";
import { homeOf, openLauncher } from "./edge/launcher/choose.ts";
import type { Launcher } from "./edge/launcher/launcher.ts";
import { readBootId } from "./edge/launcher/shim.ts";
import { lockState } from "./edge/state_lock.ts";
import type { TimedCall } from "./edge/hardware/timed_nvidia_smi.ts";
import { OwnLog } from "./edge/log/own_log.ts";
import { addressTowards, routedAddress } from "./edge/own_address.ts";
import { encodeStatus } from "./edge/session/encode.ts";
import { RECONNECT, Session } from "./edge/session/session.ts";
import { ShardStore } from "./edge/shard_store.ts";
import { Effects } from "./effects.ts";
import { adapterOf, ENGINE_NAMES } from "./engines/adapters.ts";
import { basicEnvironment, type NodeEnvironment } from "./engines/environment.ts";
import type { Inventory } from "@heddle/proto/gen/types";
import { inspectHardware } from "./discovery/inspect.ts";
import { discoveryOptions, openDiscovery } from "./discovery/discovery_options.ts";
import { sendLog } from "./log_sources.ts";
import { hardwareMetrics } from "./hardware_metrics.ts";
import { type AgentMetrics, agentMetrics } from "./metrics.ts";
import { addEngines, NodeReport } from "./node_report.ts";
import { evidenceOf } from "./discovery/evidence_of.ts";
import { makeHandle, makeKey } from "./supervision/make_names.ts";
import { MemlockWatch } from "./supervision/memlock_watch.ts";
import { prepareHere } from "./supervision/prepare_here.ts";
import type { EngineInstalls, InstalledHere } from "./installs/engine_installs.ts";
import { openInstalls, type OpenInstallsOptions } from "./installs/open_installs.ts";
import { enginesInUse } from "./core/install/engines_in_use.ts";
import type { NodeWeights } from "./weights/node_weights.ts";
import { openWeights } from "./weights/open_weights.ts";
import { answerRequest } from "./weights/requests.ts";
import { UsageWatch } from "./supervision/usage_watch.ts";
import { Supervisor } from "./supervisor.ts";

const log = logger("agent");

/** The first registration waits this long for the engines: control then places at once. */
const FIRST_LOOK_MS_MAX = 3_000;
/** A look at all hardware, where none has been had yet. */
const DRIVER_MS_MAX = 120_000;

/** What every part is built from. */
export interface AgentOptions {
  readonly config: Config;
  readonly node: string;
  /** Absolute path of heddle-shim. */
  readonly shim: string;
  /** Absolute paths of heddle-fetch and heddle-install. */
  readonly fetch: string;
  readonly install: string;
  readonly nvidiaSmi: string | undefined;
  /** A copy of control's deny list, kept current where somebody asks it. */
  readonly denyList?: DenyListCopy | undefined;
}

/** The parts of an agent that need no control. */
export interface Agent {
  readonly supervisor: Supervisor;
  readonly engines: EngineVersions;
  readonly report: NodeReport;
  readonly store: ShardStore;
  readonly launcher: Launcher;
  readonly usage: UsageWatch;
  readonly weights: NodeWeights;
  readonly installs: EngineInstalls;
}

/** What is told when something changes; a session sets it. */
interface Listeners {
  onStatus: ConstructorParameters<typeof Supervisor>[0]["onStatus"];
  onEngines: () => void;
  onNvidiaSmi: (call: TimedCall) => void;
}

/** Builds the parts; starts nothing. `address` is the management address. */
export async function buildAgent(
  options: AgentOptions,
  address: string,
  listeners: Listeners,
): Promise<Agent> {
  const { config, shim } = options;
  const store = new ShardStore(config.state_directory);
  await store.open();
  const launcher = await launcherOf(options);
  const { installs, engines } = await enginesOf(options, store, {
    onChange: () => listeners.onEngines(),
    driver: () => report.driverVersion(AbortSignal.timeout(DRIVER_MS_MAX)),
    inUse: () => enginesInUse(supervisor.statuses().map(({ shard }) => shard)),
  });
  const bootId = await readBootId(shim);
  const discovery = await openDiscovery(options, address, {
    shim,
    bootId,
    heldGpus: () => supervisor.heldGpus(),
    onNvidiaSmi: (call) => listeners.onNvidiaSmi(call),
  });
  const where = { discovery, shim, memlock: new MemlockWatch(shim, config.launcher) };
  const effects = new Effects({
    memlock: where.memlock,
    store,
    launcher,
    address,
    makeHandle,
    gpuUses: (signal) => discovery.gpuUses(signal),
    evidence: (shard, signal) =>
      evidenceOf(shard, { ...where, gpus: report.gpuFacts, folder: store.home }, signal),
    prepare: (shard, signal) =>
      prepareHere(shard, {
        ...where,
        config,
        address,
        engines,
        gpuFacts: () => report.gpuFacts,
        environment: () => environmentFor(config, store, report.managementInterface),
        weights,
        fetching: (progress) => supervisor.fetching(shard.spec.shardId, progress),
      }, signal),
  });
  const supervisor: Supervisor = new Supervisor({
    store,
    effects,
    address,
    ports: config.engine_ports,
    gpus: () => report.gpus,
    adoptReadyMs: adoptReadyMs(config),
    now: Date.now,
    makeKey,
    onStatus: (shard, status) => listeners.onStatus(shard, status),
  });
  const usage = usageWatch(launcher, supervisor);
  const weights: NodeWeights = weightsOf(options, () => listeners.onEngines());
  const report: NodeReport = new NodeReport({
    node: options.node,
    bootId,
    agentInstance: crypto.randomUUID(),
    address: config.advertise_address ?? address,
    discovery,
    engines,
    supervisor,
    usage,
    weights,
    installs,
  });
  return { supervisor, engines, report, store, launcher, usage, weights, installs };
}

type EngineHooks = Pick<OpenInstallsOptions, "onChange" | "driver" | "inUse">;

function launcherOf({ config, shim }: AgentOptions): Promise<Launcher> {
  return openLauncher({
    kind: config.launcher,
    // Below it only what belongs to shards: what fetches is nobody's stray.
    stateDirectory: join(config.state_directory, "shards"),
    shim,
    user: config.engine_user,
  });
}

async function enginesOf(options: AgentOptions, store: ShardStore, hooks: EngineHooks) {
  const { onChange } = hooks;
  const installs: EngineInstalls = installsOf(options, {
    ...hooks,
    onChange: () => engines.again(),
  });
  await installs.open();
  const installed = () => installs.installed;
  const engines: EngineVersions = engineVersions(options, store, { onChange, installed });
  return { installs, engines };
}

function installsOf({ config, shim, install }: AgentOptions, hooks: EngineHooks): EngineInstalls {
  return openInstalls({
    config: config.engine_installs,
    launcher: config.launcher,
    stateDirectory: config.state_directory,
    shim,
    program: install,
    makeHandle,
    now: Date.now,
    ...hooks,
  });
}

function weightsOf({ config, shim, fetch }: AgentOptions, onChange: () => void): NodeWeights {
  return openWeights({
    config: config.weights,
    launcher: config.launcher,
    stateDirectory: config.state_directory,
    modelDir: config.model_dirs[0] ?? "",
    shim,
    program: fetch,
    makeHandle,
    now: Date.now,
    onChange,
  });
}

function usageWatch(launcher: Launcher, supervisor: Supervisor): UsageWatch {
  const shards = () => supervisor.statuses().map(({ shard }) => shard);
  return new UsageWatch({ launcher, shards, now: Date.now });
}

/** Runs the agent until `signal` aborts. Engines go on. */
export async function runAgent(
  options: AgentOptions,
  metrics: ProgramMetrics,
  lifecycle: { readonly signal: AbortSignal; readonly onReady: () => void },
): Promise<void> {
  const { signal } = lifecycle;
  using own = new OwnLog();
  using _lock = await lockState(options.config.state_directory);
  const { address: told } = options.config;
  const address = told ?? await routedAddress(controlUrls(options.config), signal);
  const listeners: Listeners = { onStatus: () => {}, onEngines: () => {}, onNvidiaSmi: () => {} };
  const agent = await buildAgent(options, address, listeners);
  const { supervisor, engines } = agent;
  const counts = agentMetrics(metrics.registry, {
    ...agent,
    connected: () => session.notConnected === undefined,
  });
  hardwareMetrics(metrics.registry, agent.report);
  const session = sessionOf(options, agent, { own, counts });
  listeners.onStatus = (shard, status) => {
    counts.countStatus(shard, status);
    session.tell(encodeStatus(shard, status));
  };
  listeners.onNvidiaSmi = ({ call, outcome, seconds }) =>
    counts.nvidiaSmi.observe({ call, outcome }, seconds);
  listeners.onEngines = () => session.nudge();
  // Shards first: they need no engine to be looked at, and somebody may be using them.
  await agent.weights.adopt();
  await supervisor.adopt();
  lifecycle.onReady();
  spawnTask("engines", () => engines.run(signal), signal);
  const installing = agent.installs.run(signal);
  spawnTask("installs", () => installing);
  await Promise.race([engines.looked, delay(FIRST_LOOK_MS_MAX, signal)]);
  await session.run(signal);
  agent.weights.close();
  await installing;
  await supervisor.close();
}

function sessionOf(
  { config, node, denyList }: AgentOptions,
  { supervisor, report, store, launcher, weights, installs }: Agent,
  { own, counts }: { readonly own: OwnLog; readonly counts: AgentMetrics },
): Session {
  const commands = new Commands({
    supervisor,
    onVerdict: (command, verdict) =>
      counts.commands.inc({
        command,
        outcome: verdict.kind === "refused" ? verdict.reason : "accepted",
      }),
  });
  const shards = () => supervisor.statuses().map(({ shard }) => shard);
  const logs = {
    own,
    store,
    launcher,
    find: (shardId: string) => supervisor.find(shardId),
    shards: () =>
      supervisor.statuses().map(({ shard: { spec }, status }) => ({
        shardId: spec.shardId,
        words: `${spec.engine} of ${spec.model}, ${status.state}`,
      })),
  };
  return new Session({
    node,
    controls: controlUrls(config),
    backoff: RECONNECT,
    connect: async (url) =>
      connectRpc({
        url,
        // Read anew each time: certificates are renewed while the agent runs.
        tls: config.tls === undefined ? undefined : await readTlsFiles(config.tls),
      }),
    ...besideOf(config, denyList),
    hooks: {
      register: (signal) => report.register(signal),
      heartbeat: (signal) => {
        counts.heartbeats.inc();
        return report.heartbeat(signal);
      },
      startShard: (command) => commands.startShard(command),
      stopShard: (command) => commands.stopShard(command),
      nodeRequest: (request) => answerRequest(request, { weights, shards }),
      readLog: (command, send, signal) => sendLog(logs, command, send, signal),
      onRegistered: ({ engines }) => {
        counts.registrations.inc();
        spawnTask("engines wanted", () => installs.tell(engines?.engines));
      },
      onLost: () => log.info("Engines go on without control"),
    },
  });
}

function besideOf({ tls }: Config, denyList: DenyListCopy | undefined) {
  if (tls === undefined) return {};
  const beside = async (transport: Transport, signal: AbortSignal) => {
    await Promise.all([
      keepRenewed({ files: tls, transport }, signal),
      denyList?.follow(transport, signal),
    ]);
  };
  return { beside };
}

/**
 * What this node has, without control and without touching what runs on it. The engines are in it
 * when the configuration names some; then the state directory must be writable.
 */
export async function inspect(
  options: AgentOptions,
  how: { readonly capture?: string; readonly replay?: string },
  signal: AbortSignal,
): Promise<Inventory> {
  const { config } = options;
  const address = config.address ?? await addressTowards(controlUrls(config)) ?? "127.0.0.1";
  const discovery = discoveryOptions(options, address);
  const inventory = await inspectHardware({ discovery, ...how }, signal);
  if (config.engines.length === 0 || how.replay !== undefined) return inventory;
  const store = new ShardStore(config.state_directory);
  await store.open();
  const engines = engineVersions(options, store, { onChange: () => {}, installed: () => [] });
  await engines.look(signal);
  addEngines(inventory, engines.survey);
  return inventory;
}

function engineVersions(
  { config, shim }: AgentOptions,
  store: ShardStore,
  { onChange, installed }: {
    readonly onChange: () => void;
    /** Engines that Heddle itself installed. */
    readonly installed: () => readonly InstalledHere[];
  },
): EngineVersions {
  return new EngineVersions({
    shim,
    stateDirectory: config.state_directory,
    secondsMax: PROBE_SECONDS_MAX,
    ...(config.launcher === "systemd" ? { unitUser: config.engine_user } : {}),
    engines: () => {
      const own = installed().flatMap(({ name, path }) => asConfigured(name, path));
      // What the operator names comes first.
      return [...config.engines, ...own].map((engine) =>
        namedEngine(engine, environmentFor(config, store, ""))
      );
    },
    onChange,
  });
}

function asConfigured(name: string, path: string): EngineConfig[] {
  return ENGINE_NAMES.includes(name) ? [{ name, path, env: {} }] : [];
}

function environmentFor(
  config: Config,
  store: ShardStore,
  managementInterface: string,
): NodeEnvironment {
  return {
    home: homeOf(config.launcher) ?? store.home,
    managementInterface,
    engineEnv: config.engine_env,
    ofEngine: {},
  };
}

function namedEngine(engine: EngineConfig, node: NodeEnvironment) {
  const { name, path, env, version_args } = engine;
  return {
    name,
    path,
    versionArgs: version_args ?? adapterOf(name)?.versionArgs(path) ?? ["--version"],
    env: basicEnvironment({ ...node, ofEngine: env }, path),
  };
}
