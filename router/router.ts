/** Wires a router's parts together, starts them, and stops them in order. */
import type { Registry } from "prom-client";
import xxhash from "xxhash-wasm";
import { type Address, formatAddress, isLoopback } from "@heddle/common/address";
import type { DenyListCopy } from "@heddle/common/deny_list";
import { HeddleError } from "@heddle/proto/error";
import { logger } from "@heddle/common/log";
import { watchFiles } from "@heddle/common/renewal";
import type { Hash64 } from "./core/affinity/blocks.ts";
import type { Settings } from "./settings/settings.ts";
import type { UsageRecord } from "./core/request/usage_record.ts";
import { bookKeyring, type Keyring, openKeyring, readKeyring } from "./edge/client/keys.ts";
import { type Listener, type ListenOn, startListener } from "./edge/client/listener.ts";
import { readServerTls } from "./edge/client/server_tls.ts";
import { HEARTBEAT_MS } from "./edge/client/reply.ts";
import { logRequest } from "./edge/observe/request_log.ts";
import { type Present, routerMetrics } from "./edge/observe/router_metrics.ts";
import { SpoolRoom } from "./edge/upload/spool.ts";
import { startTraces } from "./edge/observe/traces.ts";
import { createUpstreamPool, UPSTREAM_DEFAULTS, type UpstreamPool } from "./edge/upstream.ts";
import { type ControlLink, startControlLink } from "./control_link.ts";
import { Endpoints } from "./endpoints.ts";
import { handle, type HandleParts } from "./handle.ts";
import { Queue } from "./queue.ts";
import { startScraping } from "./scraping.ts";
import { staticTable } from "./static_table.ts";
import { Tenancy } from "./tenancy/tenancy.ts";

export interface Router {
  readonly address: Address;
  /** Why this router should get no traffic; undefined when it should. */
  readonly notReady: () => string | undefined;
  /** Reads the key file again, and the certificate. */
  readonly reload: () => Promise<void>;
  /** Not ready, accepts no more, finishes what is in flight within the shutdown timeout. */
  stop(): Promise<void>;
}

export interface RouterHooks {
  /** A listening socket that the parent process opened, instead of `listen`. */
  readonly inheritedFd?: number;
  /** A copy of control's deny list, kept current for as long as the router runs. */
  readonly denyList?: DenyListCopy | undefined;
  /** Gets each usage record besides the log and the metrics. */
  readonly account?: (record: UsageRecord) => void;
  /** For tests, which do not wait for seconds. */
  readonly heartbeatMs?: number;
  readonly hotMs?: number;
  /** For tests on a machine that has none to spare: the longest wait for a share of a limit. */
  readonly shareWaitMs?: number;
  readonly firstShareWaitMs?: number;
}

/** Starts a router. Throws a HeddleError when something it needs is not there. */
export async function startRouter(
  settings: Settings,
  registry: Registry,
  hooks: RouterHooks = {},
): Promise<Router> {
  const log = logger("router");
  let stopping = false;
  const core = await startCore(settings, hooks);
  const { queue, link, tenancy } = core;
  let keyring = await loadKeyring(settings, tenancy).catch(async (error: unknown) => {
    await end(core);
    throw error;
  });
  const metrics = routerMetrics(registry, present(core));
  const notReady = () => stopping ? "stopping" : unreadyOf(settings, core);
  const parts: HandleParts = {
    ...partsOf(settings, core),
    traces: startTraces(),
    metrics,
    notReady,
    heartbeatMs: hooks.heartbeatMs ?? HEARTBEAT_MS,
    keyring: () => keyring,
    account: (record) => {
      metrics.record(record);
      logRequest(log, record);
      link?.count(record);
      tenancy.account(record);
      hooks.account?.(record);
    },
  };
  let listener: Listener;
  try {
    listener = await listen(settings, hooks, parts);
  } catch (error) {
    await end(core);
    throw error;
  }
  const { tls } = settings;
  const readCertificate = async () => {
    if (tls === undefined) return;
    await again("the certificate", async () => listener.reload(await readServerTls(tls)));
  };
  const files = tls === undefined ? [] : [tls.certificate_file, tls.key_file];
  const watching = await watchFiles(files, readCertificate);
  return {
    address: listener.address,
    notReady,
    async reload() {
      await again("the keys", async () => {
        keyring = await loadKeyring(settings, tenancy);
      });
      await readCertificate();
    },
    async stop() {
      watching[Symbol.dispose]();
      stopping = true;
      queue.stopHolding();
      await listener.close(settings.shutdownMs, hooks.hotMs);
      await end(core);
    },
  };
}

/** What requests meet behind the listener. */
interface Core {
  readonly now: () => number;
  readonly endpoints: Endpoints;
  readonly queue: Queue;
  readonly pool: UpstreamPool;
  readonly link: ControlLink | undefined;
  readonly scraping: Disposable;
  /** Prompt tokens that caches were thought to have, and had, since the start. */
  readonly cached: { readonly expected: number; readonly found: number };
  readonly hash: Hash64;
  readonly tenancy: Tenancy;
}

/** Ends what goes on behind the listener. The ledger first, which still needs control. */
async function end({ pool, scraping, tenancy, link }: Core): Promise<void> {
  scraping[Symbol.dispose]();
  pool[Symbol.dispose]();
  await tenancy.stop();
  await link?.stop();
}

function unreadyOf({ keys }: Settings, { endpoints, tenancy }: Core): string | undefined {
  if (!endpoints.informed) return "has not heard from control yet";
  if (keys.policy !== "control") return undefined;
  return tenancy.book.informed ? tenancy.stale() : "has not heard of any keys yet";
}

async function startCore(
  settings: Settings,
  { shareWaitMs, firstShareWaitMs, denyList }: RouterHooks,
): Promise<Core> {
  const { control, timeouts } = settings;
  const now = () => performance.now();
  const { scheduling, admission } = settings;
  const cached = { expected: 0, found: 0 };
  const endpoints = new Endpoints({
    fixed: await staticTable(settings, Date.now()),
    now,
    random: Math.random,
    scheduling: {
      staleMs: STALE_SCRAPES * scheduling.scrapeMs,
      targets: admission.targets,
      capacityOf: (model) => admission.capacities.get(model),
    },
    onCached: (expected, found) => {
      cached.expected += expected;
      cached.found += found;
    },
  });
  const pool = createUpstreamPool({
    ...UPSTREAM_DEFAULTS,
    connectTimeoutMs: timeouts.connectMs,
    firstByteTimeoutMs: timeouts.firstByteMs,
    idleTimeoutMs: timeouts.betweenChunksMs,
  });
  const identity = { name: settings.name, instance: crypto.randomUUID() };
  const tenancy = new Tenancy(settings, { ...identity, shareWaitMs, firstShareWaitMs }, now);
  await tenancy.load();
  const link = control === undefined ? undefined : await startControlLink({
    settings,
    control,
    identity,
    endpoints,
    tenancy,
    queue: () => queue,
    denyList,
  });
  if (link !== undefined) tenancy.start(link);
  const queue: Queue = new Queue({
    fleet: {
      serves: (model) => endpoints.serves(model),
      model: (name) => endpoints.table.models.get(name),
      fullness: (model) => endpoints.fullness(model),
      changed: (signal) => endpoints.changed(signal),
      wake: (model) => link?.wake(model),
    },
    requestsInFlightMax: settings.requestsInFlightMax,
    holdMs: timeouts.holdMs,
    bounds: admission.bounds,
    now,
  });
  endpoints.onChange(() => queue.lookAgain());
  const scraping = startScraping({ endpoints, pool, queue, intervalMs: scheduling.scrapeMs });
  const { h64Raw: hash } = await xxhash();
  return { now, endpoints, queue, pool, link, scraping, cached, hash, tenancy };
}

/** A model is sampled by what its replicas said at most so many scrapes ago. */
const STALE_SCRAPES = 3;

/** What of the parts is the same for as long as the router runs. */
function partsOf(settings: Settings, { endpoints, pool, queue, now, hash, tenancy }: Core) {
  return {
    hash,
    profiles: settings.scheduling.profiles,
    bandPolicy: settings.admission.policy,
    endpoints,
    pool,
    queue,
    now,
    timeouts: settings.timeouts,
    limits: tenancy.limits,
    own: tenancy.own,
    requestPolicy: settings.requestPolicy,
    cors: settings.cors,
    trustedProxies: settings.trustedProxies,
    bodyLimits: {
      wireBytesMax: settings.bodyReceivedMaxBytes,
      bodyBytesMax: settings.bodyInflatedMaxBytes,
    },
    formLimits: {
      bytesMax: settings.uploadMaxBytes,
      room: new SpoolRoom({
        folder: `${settings.stateDirectory}/uploads`,
        bytesMax: settings.uploadsMaxBytes,
      }),
    },
  };
}

/** What cannot be used is told, and leaves what there was in force. */
async function again(what: string, read: () => Promise<void>): Promise<void> {
  try {
    await read();
    logger("router").info(`Read ${what} again`);
  } catch (error) {
    logger("router").error(`Kept ${what} there was`, { error });
  }
}

async function listen(
  settings: Settings,
  { inheritedFd }: RouterHooks,
  parts: HandleParts,
): Promise<Listener> {
  const { tls } = settings;
  const on: ListenOn = inheritedFd === undefined
    ? { kind: "address", address: settings.listen }
    : { kind: "inherited", fd: inheritedFd };
  const listener = await startListener(
    { on, tls: tls === undefined ? undefined : await readServerTls(tls) },
    (request, response) => handle(request, response, parts),
  );
  try {
    demandKeys(listener.address, settings);
  } catch (error) {
    await listener.close(0);
    throw error;
  }
  return listener;
}

// The configuration was checked by its own `listen`; a socket that was inherited may be another.
function demandKeys(bound: Address, { keys }: Settings): void {
  if (keys.policy !== "open" || isLoopback(bound.host)) return;
  throw new HeddleError(
    "invalid_input",
    `Cannot serve on ${formatAddress(bound)} with keys.policy open: ` +
      "only loopback is allowed without keys; set keys.policy to control or key_file",
  );
}

async function loadKeyring(
  { keys, cors }: Settings,
  { book, trust }: Tenancy,
): Promise<Keyring> {
  if (keys.file !== undefined) return await readKeyring(keys.file);
  return keys.policy === "control" ? bookKeyring(book, trust) : openKeyring(book, trust, cors);
}

function present({ endpoints, queue, pool, link, cached, tenancy }: Core): Present {
  return {
    tenancy: () => tenancy.present(),
    inFlight: () => queue.inFlight,
    held: () => queue.held,
    queued: () => queue.queued(),
    saturations: () => queue.saturations(),
    cached: () => cached,
    replicas: () => endpoints.replicas(),
    connections: () => pool.connections(),
    control: link,
  };
}
