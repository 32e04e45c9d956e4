/** One running control: its store, its loop and its listeners, put together and taken apart. */
import type { ConnectRouter } from "@connectrpc/connect";
import type { Address } from "@heddle/common/address";
import type { Role } from "@heddle/common/identity";
import { logger } from "@heddle/common/log";
import { type ProgramMetrics, startMetrics } from "@heddle/common/metrics";
import { startMetricsServer } from "@heddle/common/metrics_server";
import { readTlsFiles, type TlsMaterial } from "@heddle/common/mtls_files";
import { type RpcServer, startRpcServer } from "@heddle/common/rpc_server";
import { spawnTask } from "@heddle/common/task";
import { errorText, HeddleError } from "@heddle/proto/error";
import { AdminService } from "@heddle/proto/gen/admin";
import { AgentService } from "@heddle/proto/gen/agent";
import { RouterService } from "@heddle/proto/gen/router";
import { MONOTONIC_CLOCK } from "./clock.ts";
import type { Settings } from "./config.ts";
import { judgeCatalog } from "./core/catalog/judge_catalog.ts";
import { viewModels } from "./core/views/models.ts";
import { viewNodes } from "./core/views/nodes.ts";
import { viewReplicas } from "./core/views/replicas.ts";
import { startWorld, type World } from "./core/world.ts";
import { adminRpc } from "./edge/admin/admin_rpc.ts";
import { agentRpc } from "./edge/agent_rpc.ts";
import type { Realm } from "./edge/caller.ts";
import { CatalogWatch } from "./edge/catalog_watch.ts";
import { type ControlMetrics, controlMetrics } from "./edge/control_metrics.ts";
import { LogRequests } from "./edge/log_requests.ts";
import { NodeStreams } from "./edge/node_streams.ts";
import { routerRpc } from "./edge/router_rpc.ts";
import { openSqliteStore } from "./edge/store/sqlite.ts";
import type { Store } from "./edge/store/store.ts";
import { WatchHub } from "./edge/watch/hub.ts";
import { effectsOf, hooksOf } from "./effects.ts";
import { createLoop, type Loop } from "./loop.ts";
import { startCatalog } from "./start_catalog.ts";

const log = logger("control");

/** How long streams may take to end when control stops: their ends are told at once. */
const CLOSE_GRACE_MS = 2_000;

export interface Control {
  /** As bound, with the ports that the system chose where 0 was asked for. */
  readonly agents: Address;
  readonly admin: Address;
  readonly metrics: Address;
  /** Reads the certificate and the catalog again. Never rejects: what is wrong is logged. */
  reload(): Promise<void>;
  /** Stops deciding, ends every stream with a reason, closes the store. Engines go on. */
  stop(): Promise<void>;
}

/** Starts everything or, when it throws, nothing. */
export async function startControl(settings: Settings): Promise<Control> {
  await using stack = new AsyncDisposableStack();
  const tls = settings.tls === undefined ? undefined : await readTlsFiles(settings.tls);
  const store = stack.adopt(await openSqliteStore(settings.stateDirectory), (it) => it.close());
  const metrics = stack.adopt(startMetrics("control"), (it) => it.stop());
  const { world, invalidCatalog } = startingWorld(settings, store);
  const brain = startBrain(world, { store, metrics, settings });
  const { loop, streams, hub, catalogWatch } = brain;
  stack.defer(() => loop.stop());
  await catalogWatch.check();
  if (invalidCatalog !== undefined && loop.world().catalog.text === "") throw invalidCatalog;
  let stopping = false;
  const metricsServer = stack.adopt(
    await startMetricsServer({
      listen: settings.metrics,
      registry: metrics.registry,
      notReady: () => stopping ? "stopping" : undefined,
    }),
    (it) => it.close(),
  );
  const stopWatch = new AbortController();
  const watching = catalogWatch.run(stopWatch.signal);
  spawnTask("catalog watch", () => watching);
  stack.defer(() => watching);
  stack.defer(() => stopWatch.abort());
  const listeners = await startListeners(settings, tls, brain);
  stack.defer(() => listeners.close());
  stack.defer(() => {
    stopping = true;
    const end = new HeddleError("unavailable", "Control stops; it or another one is back soon");
    streams.closeAll(end);
    hub.closeAll(end);
    loop.stop();
  });
  const running = stack.move();
  return {
    agents: listeners.agents.address,
    admin: listeners.admin.address,
    metrics: metricsServer.address,
    async reload() {
      await reloadTls(settings, listeners);
      await catalogWatch.check();
    },
    stop: () => running.disposeAsync(),
  };
}

function startingWorld(
  settings: Settings,
  store: Store,
): { world: World; invalidCatalog: HeddleError | undefined } {
  const stored = store.load();
  const { state, invalid } = startCatalog(stored.catalog, settings.catalogFile);
  const world = startWorld({
    cluster: settings.cluster,
    storedTerm: stored.term,
    catalog: state,
    knownNodes: stored.knownNodes,
    decisions: stored.decisions,
    timings: settings.timings,
  }, MONOTONIC_CLOCK.now());
  log.info("Starting", {
    cluster: world.cluster,
    term: world.term,
    knownNodes: world.knownNodes.size,
    catalogRevision: state.revision,
  });
  return { world, invalidCatalog: invalid };
}

/** What decides, and what it speaks through. */
interface Brain {
  readonly loop: Loop;
  readonly streams: NodeStreams;
  readonly hub: WatchHub;
  readonly logs: LogRequests;
  readonly catalogWatch: CatalogWatch;
}

function startBrain(
  world: World,
  parts: { store: Store; metrics: ProgramMetrics; settings: Settings },
): Brain {
  const streams = new NodeStreams((node) => {
    log.info("Node disconnected", { node });
    logs.nodeGone(node);
    loop.dispatch({ kind: "stream_closed", node });
  });
  const logs = new LogRequests((node, message) => streams.send(node, message));
  const hub = new WatchHub(world.published);
  const metrics: ControlMetrics = controlMetrics(parts.metrics.registry, {
    nodes: () => viewNodes(loop.world(), loop.now()),
    replicas: () => viewReplicas(loop.world(), loop.now()),
    models: () => viewModels(loop.world(), loop.now()),
    term: () => loop.world().term,
    settled: () => loop.world().published.settled,
    catalogRevision: () => loop.world().catalog.revision,
    agentStreams: () => streams.size,
    watchClients: () => hub.size,
    logReaders: () => logs.size,
  });
  const loop = createLoop({
    world,
    clock: MONOTONIC_CLOCK,
    effects: effectsOf({ streams, hub, store: parts.store, metrics }),
    hooks: hooksOf(metrics),
  });
  const catalogWatch = new CatalogWatch({
    file: parts.settings.catalogFile,
    loop,
    current: () => loop.world().catalog,
    judge: (catalog) => judgeCatalog(loop.world(), catalog, loop.now()),
    onState: (state) => metrics.catalogState(state),
  });
  return { loop, streams, hub, logs, catalogWatch };
}

interface Listeners {
  readonly agents: RpcServer;
  readonly admin: RpcServer;
  close(): Promise<void>;
}

async function startListeners(
  settings: Settings,
  tls: TlsMaterial | undefined,
  { loop, streams, hub, logs }: Brain,
): Promise<Listeners> {
  const realm: Realm = { cluster: settings.cluster, secured: tls !== undefined };
  const serve = (listen: Address, roles: readonly Role[], routes: (to: ConnectRouter) => void) =>
    // Without TLS nobody has a role.
    startRpcServer({ listen, tls, routes, ...(tls === undefined ? {} : { roles }) });
  const agents = await serve(settings.agents, ["agent", "router"], (to) => {
    to.service(AgentService, agentRpc({ realm, streams, logs, loop }));
    to.service(RouterService, routerRpc({ realm, hub, loop }));
  });
  try {
    const admin = await serve(settings.admin, ["operator"], (to) => {
      to.service(AdminService, adminRpc({ realm, logs, loop }));
    });
    const close = async () => {
      await Promise.all([agents.close(CLOSE_GRACE_MS), admin.close(CLOSE_GRACE_MS)]);
    };
    return { agents, admin, close };
  } catch (error) {
    await agents.close(0);
    throw error;
  }
}

async function reloadTls(settings: Settings, { agents, admin }: Listeners): Promise<void> {
  if (settings.tls === undefined) return;
  try {
    const next = await readTlsFiles(settings.tls);
    agents.reload(next);
    admin.reload(next);
    log.info("Certificate read again; new connections get it");
  } catch (error) {
    log.error("Cannot read the certificate again; the one before stays", {
      reason: errorText(error),
    });
  }
}
