/** One running control: its store, its seat and its listeners, put together and taken apart. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { Address } from "@heddle/common/address";
import type { ShownCertificate } from "@heddle/common/identity";
import { logger } from "@heddle/common/log";
import { startMetrics } from "@heddle/common/metrics";
import { startMetricsServer } from "@heddle/common/metrics_server";
import { readTlsFiles, type TlsMaterial } from "@heddle/common/mtls_files";
import { type RpcServer, type RpcServerOptions, startRpcServer } from "@heddle/common/rpc_server";
import { measureExpiry } from "@heddle/common/renewal";
import { errorText, HeddleError } from "@heddle/proto/error";
import { AdminService } from "@heddle/proto/gen/admin";
import { AgentService } from "@heddle/proto/gen/agent";
import { CertificateService, RenewalService } from "@heddle/proto/gen/identity";
import { RouterService } from "@heddle/proto/gen/router";
import { TenancyService } from "@heddle/proto/gen/tenancy";
import { MONOTONIC_CLOCK } from "./clock.ts";
import { routerTenancyOf, tenancyOf } from "./calls.ts";
import type { Settings } from "./config.ts";
import { viewModels } from "./core/views/models.ts";
import { viewNodes } from "./core/views/nodes.ts";
import { viewReplicas } from "./core/views/replicas.ts";
import type { World } from "./core/world.ts";
import { adminRpc } from "./edge/admin/admin_rpc.ts";
import { operatorName, type Realm } from "./edge/caller.ts";
import { demandOperator, parseTokens, type Tokens } from "./edge/identity/operators.ts";
import { renewalRpc } from "./edge/identity/renewal.ts";
import { strikesRpc, struckWhy } from "./edge/identity/strikes.ts";
import { controlMetrics, type MetricSources } from "./edge/control_metrics.ts";
import { readPostgresFiles } from "./edge/store/postgres/files.ts";
import { openPostgresStore } from "./edge/store/postgres/store.ts";
import { openSqliteStore } from "./edge/store/sqlite.ts";
import type { Store } from "./edge/store/store.ts";
import { Seat } from "./seat.ts";

const log = logger("control");

/** How long streams may take to end when control stops: their ends are told at once. */
const CLOSE_GRACE_MS = 2_000;

export interface Control {
  /** As bound, with the ports that the system chose where 0 was asked for. */
  readonly agents: Address;
  readonly admin: Address;
  readonly metrics: Address;
  /** Rejects when it can go on neither leading nor standing by. */
  readonly failed: Promise<never>;
  /** Reads the certificate and the catalog again. Never rejects: what is wrong is logged. */
  reload(): Promise<void>;
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
  const stopped = () =>
    new HeddleError("unavailable", "Control stops; it or another one is back soon");
  const seat: Seat = new Seat({ settings, realm, store, metrics: () => controlled });
  const controlled = controlMetrics(metrics.registry, sourcesOf(seat));
  const metricsServer = stack.adopt(
    await startMetricsServer({
      listen: settings.metrics,
      secure: settings.metricsTls && settings.tls &&
        { listen: settings.metricsTls, files: settings.tls },
      registry: metrics.registry,
      notReady: () => stopping ? "stopping" : notReady(seat),
    }),
    (it) => it.close(),
  );
  // Before it leads: a control that nobody can reach must not keep another from leading.
  const listeners = await startListeners(settings, tls, { seat, realm, store });
  stack.defer(() => listeners.close());
  stack.defer(() => {
    stopping = true;
    return seat.stop(stopped());
  });
  await seat.open();
  const running = stack.move();
  return {
    agents: listeners.agents.address,
    admin: listeners.admin.address,
    metrics: metricsServer.address,
    failed: seat.failed,
    async reload() {
      await reloadTls(settings, listeners);
      await seat.leadership?.catalogWatch.check();
    },
    stop: () => running.disposeAsync(),
  };
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
function sourcesOf(seat: Seat): MetricSources {
  const view = <T>(make: (world: World, now: number) => readonly T[]) => () => {
    const loop = seat.leadership?.loop;
    return loop === undefined ? [] : make(loop.world(), loop.now());
  };
  const world = () => seat.leadership?.loop.world();
  return {
    nodes: view(viewNodes),
    replicas: view(viewReplicas),
    models: view(viewModels),
    term: () => world()?.term ?? 0,
    settled: () => world()?.published.settled ?? false,
    catalogRevision: () => world()?.catalog.revision ?? 0,
    agentStreams: () => seat.leadership?.streams.size ?? 0,
    watchClients: () => seat.leadership?.hub.size ?? 0,
    logReaders: () => seat.leadership?.logs.size ?? 0,
    leading: () => seat.leadership !== undefined,
    storeAway: () => seat.standing.away !== undefined,
  };
}

interface Listeners {
  readonly agents: RpcServer;
  readonly admin: RpcServer;
  /** Throws `invalid_input` when the tokens cannot be read; those of before stay. */
  reload(tls: TlsMaterial): Promise<void>;
  close(): Promise<void>;
}

async function startListeners(
  settings: Settings,
  tls: TlsMaterial | undefined,
  { seat, realm, store }: {
    readonly seat: Seat;
    readonly realm: Realm;
    readonly store: Store;
  },
): Promise<Listeners> {
  let tokens = await readTokens(settings);
  // Without TLS nobody has a certificate, and a control that stands by serves nobody.
  const refuses = (shown: ShownCertificate) =>
    struckWhy(seat.leadership?.loop.world().decisions.struck ?? new Map(), shown);
  const { tokensFile } = settings;
  const operators = tokensFile === undefined
    ? (tls === undefined ? {} : { roles: ["operator"] as const })
    : { certificateOptional: true, interceptors: [demandOperator(() => tokens)] };
  const opened: RpcServer[] = [];
  const recheck = () => opened.forEach((server) => server.recheck());
  const close = async (graceMs: number) => {
    await Promise.all(opened.map((server) => server.close(graceMs)));
  };
  const serve = async (options: Omit<RpcServerOptions, "tls">) => {
    const server = await startRpcServer({ tls, refuses, ...options });
    opened.push(server);
    return server;
  };
  try {
    const agents = await serve({
      listen: settings.agents,
      ...(tls === undefined ? {} : { roles: ["agent", "router"] }),
      routes: (to) => {
        to.service(AgentService, agentsOf(seat));
        to.service(RouterService, routersOf(seat));
        to.service(RenewalService, renewalRpc({ ...settings, now: Date.now }));
      },
    });
    const admin = await serve({
      listen: settings.admin,
      ...operators,
      routes: (to) => {
        to.service(AdminService, operatorsOf(seat, realm));
        to.service(CertificateService, strikesOf({ seat, realm }, recheck));
        to.service(TenancyService, tenancyOf(seat, { realm, store }));
      },
    });
    return {
      agents,
      admin,
      async reload(next) {
        agents.reload(next);
        admin.reload(next);
        tokens = await readTokens(settings);
      },
      close: () => close(CLOSE_GRACE_MS),
    };
  } catch (error) {
    await close(0);
    throw error;
  }
}

async function readTokens({ tokensFile }: Settings): Promise<Tokens> {
  if (tokensFile === undefined) return new Map();
  try {
    return parseTokens(await Deno.readTextFile(tokensFile), tokensFile);
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw new HeddleError("invalid_input", `Cannot read ${tokensFile}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

function strikesOf(
  { seat, realm }: { readonly seat: Seat; readonly realm: Realm },
  recheck: () => void,
): ServiceImpl<typeof CertificateService> {
  const leader = () => seat.demand("failed_precondition");
  return strikesRpc({
    by: (context) => operatorName(context, realm),
    loop: {
      dispatch: (event) => leader().loop.dispatch(event),
      world: () => leader().loop.world(),
    },
    now: Date.now,
    recheck,
  });
}

// Each call goes to whoever leads at its beginning, and ends when that one does.
function agentsOf(seat: Seat): ServiceImpl<typeof AgentService> {
  return {
    async *connect(requests, context) {
      yield* seat.demand("unavailable").agents.connect(requests, context);
    },
  };
}

function routersOf(seat: Seat): ServiceImpl<typeof RouterService> {
  const routers = () => seat.demand("unavailable").routers;
  return {
    async *watch(request, context) {
      yield* routers().watch(request, context);
    },
    report: (request, context) => routers().report(request, context),
    wake: (request, context) => routers().wake(request, context),
    ...routerTenancyOf(seat),
  };
}

function operatorsOf(seat: Seat, realm: Realm): ServiceImpl<typeof AdminService> {
  const leader = () => seat.demand("failed_precondition");
  return adminRpc({
    realm,
    logs: { read: (source, signal) => leader().logs.read(source, signal) },
    loop: {
      dispatch: (event) => leader().loop.dispatch(event),
      world: () => leader().loop.world(),
      now: () => MONOTONIC_CLOCK.now(),
    },
    seat,
    audit: (limit) => leader().audit(limit),
    superseded: () => leader().catalogWatch.supersede(),
  });
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
