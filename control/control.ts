/** One running control: its store, its seat and its listeners, put together and taken apart. */
import { isDeepStrictEqual } from "node:util";
import type { Address } from "@heddle/common/address";
import { struckWhy } from "@heddle/common/deny_list";
import { logger } from "@heddle/common/log";
import { startMetrics } from "@heddle/common/metrics";
import { startMetricsServer } from "@heddle/common/metrics_server";
import { readTlsFiles } from "@heddle/common/mtls_files";
import { measureExpiry, watchFiles } from "@heddle/common/renewal";
import { spawnTask } from "@heddle/common/task";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Settings } from "./config.ts";
import { viewAttachedReplicas } from "./core/views/attached.ts";
import { viewDecisions } from "./core/views/decisions.ts";
import { viewModels } from "./core/views/models.ts";
import { viewNodes } from "./core/views/nodes.ts";
import { viewReplicas } from "./core/views/replicas.ts";
import type { World } from "./core/world.ts";
import type { Realm } from "./edge/caller.ts";
import { controlMetrics, type MetricSources } from "./edge/control_metrics.ts";
import { DenyList } from "./edge/identity/deny_list.ts";
import { readPostgresFiles } from "./edge/store/postgres/files.ts";
import { openPostgresStore } from "./edge/store/postgres/store.ts";
import { openSqliteStore } from "./edge/store/sqlite.ts";
import type { Store } from "./edge/store/store.ts";
import { type Listeners, startListeners } from "./listening/listeners.ts";
import { Seat } from "./seat.ts";

const log = logger("control");

export interface Control {
  /** As bound, with the ports that the system chose where 0 was asked for. */
  readonly agents: Address;
  readonly admin: Address;
  /** Undefined: nothing can attach. */
  readonly join: Address | undefined;
  readonly metrics: Address;
  /** With mutual TLS; undefined: metrics are served plain alone. */
  readonly metricsTls: Address | undefined;
  /** The console's own listener; undefined when there is none. */
  readonly console: Address | undefined;
  /** Rejects when it can go on neither leading nor standing by. */
  readonly failed: Promise<never>;
  /**
   * Reads the certificate and the catalog again, and tells the nodes what engines they are to have
   * now. Never rejects: what is wrong is logged.
   */
  reload(engines?: Settings["engines"]): Promise<void>;
  /** Stops deciding, ends every stream with a reason, closes the store. Engines go on. */
  stop(): Promise<void>;
}

/** Starts everything or, when it throws, nothing. */
export async function startControl(settings: Settings): Promise<Control> {
  await using stack = new AsyncDisposableStack();
  const tls = settings.tls === undefined ? undefined : await readTlsFiles(settings.tls);
  const realm: Realm = { cluster: settings.cluster, secured: tls !== undefined };
  const store = stack.adopt(await openStore(settings), (it) => it.close());
  const metrics = stack.adopt(startMetrics("control"), (it) => it.stop());
  if (settings.tls !== undefined) measureExpiry(metrics.registry, settings.tls);
  let stopping = false;
  let wanted = settings.engines;
  const seat: Seat = new Seat({
    settings,
    engines: () => wanted,
    realm,
    store,
    metrics: () => controlled,
  });
  const consoles = { open: () => 0 };
  const denied = new DenyList({
    store,
    leading: () => seat.leadership?.loop.world().decisions.struck,
  });
  const controlled = controlMetrics(metrics.registry, sourcesOf(seat, () => consoles.open()));
  const metricsServer = stack.adopt(
    await startMetricsServer({
      listen: settings.metrics,
      secure: settings.metricsTls && settings.tls &&
        { listen: settings.metricsTls, files: settings.tls },
      registry: metrics.registry,
      notReady: () => stopping ? "stopping" : notReady(seat),
      refuses: (shown) => struckWhy(denied.struck, shown),
    }),
    (it) => it.close(),
  );
  stack.defer(denied.onChange(() => metricsServer.recheck()));
  // Before it leads: a control that nobody can reach must not keep another from leading.
  const listeners = await startListeners(settings, tls, { seat, realm, store, denied });
  consoles.open = listeners.console.consoles;
  stack.defer(() => listeners.close());
  stack.defer(() => {
    stopping = true;
    return seat.stop(stopsNow());
  });
  // First of all: pages keep what they show, and are not told that there is nothing.
  stack.defer(() => listeners.console.close());
  await seat.open();
  await denied.read();
  stack.use(following(denied));
  stack.use(await watchCertificate(settings, listeners));
  const running = stack.move();
  return {
    agents: listeners.agents.address,
    admin: listeners.admin.address,
    join: listeners.join?.address,
    metrics: metricsServer.address,
    metricsTls: metricsServer.secureAddress,
    console: listeners.console.local,
    failed: seat.failed,
    async reload(engines) {
      await reloadTls(settings, listeners);
      await metricsServer.reload();
      if (!isDeepStrictEqual(wanted, engines)) {
        wanted = engines;
        seat.leadership?.tellAgain();
      }
      await seat.leadership?.catalogWatch.check();
    },
    stop: () => running.disposeAsync(),
  };
}

/** Follows what is struck until it is disposed of. */
function following(denied: DenyList): AsyncDisposable {
  const stop = new AbortController();
  const follows = denied.follow(stop.signal);
  spawnTask("deny list", () => follows);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await follows;
    },
  };
}

function watchCertificate(settings: Settings, listeners: Listeners): Promise<Disposable> {
  return watchFiles(Object.values(settings.tls ?? {}), () => reloadTls(settings, listeners));
}

function stopsNow(): HeddleError {
  return new HeddleError("unavailable", "Control stops; it or another one is back soon");
}

async function openStore({ postgres, stateDirectory }: Settings): Promise<Store> {
  if (postgres === undefined) return await openSqliteStore(stateDirectory);
  return openPostgresStore(await readPostgresFiles(postgres));
}

/** A standby is ready: it does what it is there for. */
function notReady({ standing, leadership }: Seat): string | undefined {
  if (standing.away !== undefined) return `the store does not answer: ${standing.away}`;
  return standing.leading && leadership === undefined ? "about to lead" : undefined;
}

/** A control that stands by knows of nothing. */
function sourcesOf(seat: Seat, consoles: () => number): MetricSources {
  const view = <T>(make: (world: World, now: number) => readonly T[]) => () => {
    const loop = seat.leadership?.loop;
    return loop === undefined ? [] : make(loop.world(), loop.now());
  };
  const world = () => seat.leadership?.loop.world();
  return {
    nodes: view(viewNodes),
    replicas: view(viewReplicas),
    attached: view(viewAttachedReplicas),
    models: view(viewModels),
    decisions: view(viewDecisions),
    term: () => world()?.term ?? 0,
    settled: () => world()?.published.settled ?? false,
    catalogRevision: () => world()?.catalog.revision ?? 0,
    agentStreams: () => seat.leadership?.streams.size ?? 0,
    watchClients: () => seat.leadership?.hub.size ?? 0,
    logReaders: () => seat.leadership?.logs.size ?? 0,
    consoles,
    leading: () => seat.leadership !== undefined,
    storeAway: () => seat.standing.away !== undefined,
    keys: () => seat.leadership?.tenancy.keys() ?? 0,
    sharedLimits: () => seat.leadership?.tenancy.sharedLimits() ?? 0,
  };
}

async function reloadTls(settings: Settings, listeners: Listeners): Promise<void> {
  if (settings.tls === undefined) return;
  try {
    await listeners.reload(await readTlsFiles(settings.tls));
    log.info("Certificate read again; new connections get it");
  } catch (error) {
    log.error("Cannot read the certificate again; the one before stays", {
      reason: errorText(error),
    });
  }
}
