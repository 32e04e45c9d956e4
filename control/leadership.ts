/**
 * One time of leading, from a granted lease to its end: the world and the loop that owns it, the
 * streams and watches that hang on it, and the catalog's file. Nothing of it outlives its end.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import { logger } from "@heddle/common/log";
import { spawnTask } from "@heddle/common/task";
import type { HeddleError } from "@heddle/proto/error";
import type { AgentService } from "@heddle/proto/gen/agent";
import type { AttachService } from "@heddle/proto/gen/attach";
import { MONOTONIC_CLOCK } from "./clock.ts";
import type { Settings } from "./config.ts";
import { judgeCatalog } from "./core/catalog/judge_catalog.ts";
import { startWorld, type World } from "./core/world.ts";
import { agentRpc, tellAgain } from "./edge/agent_rpc.ts";
import { attachRpc } from "./edge/attach/attach_rpc.ts";
import { Prover } from "./edge/attach/prover.ts";
import type { Realm } from "./edge/caller.ts";
import { CatalogWatch } from "./edge/catalog_watch.ts";
import type { ControlMetrics } from "./edge/control_metrics.ts";
import { idSalt } from "./edge/lease/id_salt.ts";
import { LogRequests } from "./edge/log_requests.ts";
import { NodeRequests } from "./edge/node_requests.ts";
import { keepRoom } from "./edge/weights/room_keeper.ts";
import { scoutSources } from "./edge/weights/source_scout.ts";
import { NodeStreams } from "./edge/node_streams.ts";
import { type FleetCalls, routerRpc } from "./edge/router_rpc.ts";
import type { Store, Stored } from "./edge/store/store.ts";
import { WatchHub } from "./edge/watch/hub.ts";
import { effectsOf, hooksOf } from "./effects.ts";
import { createLoop, type Loop } from "./loop.ts";
import { startCatalog } from "./start_catalog.ts";
import { readTenancy, type StartingTenancy, startTenancy, type TenancyPart } from "./tenancy.ts";

const log = logger("control");

export interface Leadership {
  readonly loop: Loop;
  readonly streams: NodeStreams;
  readonly hub: WatchHub;
  readonly logs: LogRequests;
  readonly requests: NodeRequests;
  readonly catalogWatch: CatalogWatch;
  /** The newest plan that would have broken a rule, by one such rule; undefined: none. */
  dropped(): { readonly rule: string; readonly detail: string; readonly at: number } | undefined;
  readonly agents: ServiceImpl<typeof AgentService>;
  /** Tells every node anew what it was told when it registered. */
  tellAgain(): void;
  readonly attach: ServiceImpl<typeof AttachService>;
  readonly routers: FleetCalls;
  readonly tenancy: TenancyPart;
  /** The newest so many audit records, newest first. */
  readonly audit: Store["audit"];
  /** Stores at once. Throws as the store does, and `system` while another control may lead. */
  readonly persist: Store["persist"];
  /** Nothing is decided or sent from here on; every stream ends with `reason`. Idempotent. */
  end(reason: HeddleError): Promise<void>;
}

export interface LeadOptions {
  readonly settings: Settings;
  /** What every node is to have now; undefined: no word on engines. */
  readonly engines: () => Settings["engines"];
  readonly realm: Realm;
  readonly store: Store;
  readonly metrics: ControlMetrics;
  /** Stored already. */
  readonly term: number;
  /** False while another control may lead. */
  readonly sure: () => boolean;
}

/**
 * Begins to lead with what is stored. Throws `system` when the store does not answer, and
 * `failed_precondition` when it holds what this version cannot act on.
 */
export async function lead(options: LeadOptions): Promise<Leadership> {
  const { settings, store } = options;
  const stored = await store.load();
  const tenancy = await readTenancy(store, settings.usage);
  const { world, invalidCatalog } = startingWorld(options, stored);
  const stopWatch = new AbortController();
  const brain = startBrain(world, options, { stored, tenancy, ends: stopWatch.signal });
  const { loop, streams, hub, catalogWatch } = brain;
  await catalogWatch.check();
  if (invalidCatalog !== undefined && loop.world().catalog.text === "") {
    loop.stop();
    brain.tenancy.end();
    throw invalidCatalog;
  }
  const watching = catalogWatch.run(stopWatch.signal);
  spawnTask("catalog watch", () => watching);
  const { requests } = brain;
  const scouting = scoutSources({ loop, requests, sure: options.sure }, stopWatch.signal);
  spawnTask("sources", () => scouting);
  const keeping = keepRoom({
    loop,
    requests,
    persist: brain.persist,
    metrics: options.metrics,
    freeBelowBytes: settings.weightsFreeBelowBytes,
    sure: options.sure,
  }, stopWatch.signal);
  spawnTask("room for weights", () => keeping);
  log.info("Leading", { control: settings.name, term: world.term });
  return {
    ...brain,
    async end(reason) {
      loop.stop();
      stopWatch.abort();
      brain.tenancy.end();
      streams.closeAll(reason);
      hub.closeAll(reason);
      await Promise.all([watching, scouting, keeping]);
    },
  };
}

function startingWorld(
  { settings, term }: LeadOptions,
  stored: Stored,
): { world: World; invalidCatalog: HeddleError | undefined } {
  const { state, invalid } = startCatalog(stored.catalog, settings.catalogFile);
  const world = startWorld({
    cluster: settings.cluster,
    // The lease came with a term of its own, one above what was stored.
    storedTerm: term - 1,
    salt: idSalt(),
    catalog: state,
    knownNodes: stored.knownNodes,
    decisions: stored.decisions,
    failures: stored.failures,
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

function startBrain(
  world: World,
  { settings, engines, realm, store, metrics, sure }: LeadOptions,
  { stored, tenancy, ends }: {
    readonly stored: Stored;
    readonly tenancy: StartingTenancy;
    /** Aborts when this time of leading ends. */
    readonly ends: AbortSignal;
  },
): Omit<Leadership, "end"> {
  const streams = new NodeStreams((node) => {
    log.info("Node disconnected", { node });
    logs.nodeGone(node);
    requests.nodeGone(node);
    spawnTask("node disconnected", () => loop.dispatch({ kind: "stream_closed", node }));
  });
  const logs = new LogRequests((node, message) => streams.send(node, message));
  const requests = new NodeRequests((node, message) => streams.send(node, message));
  const hub = new WatchHub(world.published);
  const effects = effectsOf({ streams, hub, store, metrics, sure });
  const loop = createLoop({
    world,
    clock: MONOTONIC_CLOCK,
    effects,
    hooks: hooksOf({
      metrics,
      dropped: ({ rule, detail }) => dropped = { rule, detail, at: loop.now() },
    }),
  });
  let dropped: ReturnType<Leadership["dropped"]>;
  const agents = { realm, streams, logs, requests, loop, engines };
  const catalogWatch = new CatalogWatch({
    file: settings.catalogFile,
    past: pastOf(stored, settings.name),
    loop,
    current: () => loop.world().catalog,
    judge: (catalog) => judgeCatalog(loop.world(), catalog, loop.now()),
    onState: (state) => metrics.catalogState(state),
    remember: (hash) => store.persist([{ kind: "catalog_file", control: settings.name, hash }]),
  });
  return {
    loop,
    streams,
    hub,
    logs,
    requests,
    catalogWatch,
    dropped: () => dropped,
    agents: agentRpc(agents),
    tellAgain: () => tellAgain(agents),
    attach: attachRpc({
      realm,
      issuing: settings.issuing,
      loop,
      prover: new Prover({ loop, signal: ends }),
      wallClock: Date.now,
    }),
    routers: routerRpc({ realm, hub, loop }),
    tenancy: startTenancy(tenancy, {
      settings: settings.usage,
      realm,
      store,
      hub,
      persist: effects.persist,
      metrics,
    }),
    audit: (limit) => store.audit(limit),
    persist: effects.persist,
  };
}

// What another control had in its own file says nothing about ours.
function pastOf({ catalogFile, appliedCatalogs }: Stored, name: string) {
  return {
    seen: catalogFile?.control === name ? catalogFile.hash : undefined,
    applied: appliedCatalogs,
  };
}
