/** The console of one control: what it pushes, what it remembers, and where it is reached. */
import type { ConnectRouter } from "@connectrpc/connect";
import { type Address, formatAddress } from "@heddle/common/address";
import { logger } from "@heddle/common/log";
import type { ShownCertificate } from "@heddle/common/identity";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import type { Peer } from "@heddle/common/rpc_server";
import { VERSION } from "@heddle/common/version";
import { MONOTONIC_CLOCK } from "../clock.ts";
import type { Settings } from "../config.ts";
import type { World } from "../core/world.ts";
import type { WebRequest, WebResponse } from "../edge/console/http/answer.ts";
import { Playground } from "../edge/console/chat.ts";
import { consoleHandler, type Door } from "../edge/console/console.ts";
import { hostsOf } from "../edge/console/http/guard.ts";
import { BEGIN_WITHIN_MS, Happenings, LOOK_EVERY_MS } from "../edge/live/happenings.ts";
import type { Beside } from "../edge/live/trouble_facets.ts";
import { startConsoleListener } from "../edge/console/http/listener.ts";
import { Live } from "../edge/console/live.ts";
import { preview } from "../edge/console/preview.ts";
import { Sessions } from "../edge/console/http/session.ts";
import { SAMPLE_EVERY_MS, Traffic } from "../edge/console/traffic.ts";
import {
  decisionItems,
  modelItems,
  nodeItems,
  replicaItems,
  routerItems,
  standbyItem,
  statusItem,
} from "../edge/console/views.ts";
import type { Topic } from "../edge/console/wire.ts";
import type { Tokens } from "../edge/identity/operators.ts";
import { whoLeads } from "../edge/lease/standby.ts";
import type { Seat } from "../seat.ts";

const log = logger("console");

/** Names of this very machine, for the listener on loopback. */
const LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "::1"];

/** Who comes in on loopback, where nobody logs in. */
const LOCAL = { name: "local", role: "admin" } as const;

export interface ConsoleParts {
  readonly settings: Settings;
  readonly seat: Seat;
  readonly tls: TlsMaterial | undefined;
  readonly tokens: () => Tokens;
  /** What agents, routers and attached engines have shown. */
  readonly certificates: () => readonly ShownCertificate[];
  /** Of this control, as of the last reload; undefined without TLS. */
  readonly own: () => Beside["own"];
  /** The admin API's services. */
  readonly routes: (router: ConnectRouter) => void;
}

export interface ServedConsole {
  /** Where it is without logging in; undefined when there is no such listener. */
  readonly local: Address | undefined;
  readonly traffic: Traffic;
  readonly happenings: Happenings;
  /** How many are open. */
  consoles(): number;
  /** Answers what the admin listener has no RPC for. */
  answer(request: WebRequest, response: WebResponse, peer: Peer): void;
  /** Ends every console's stream. */
  close(): Promise<void>;
}

/** Starts it. Throws `system` when its listener cannot be bound. */
export async function serveConsole(parts: ConsoleParts): Promise<ServedConsole> {
  const { settings, tls, seat } = parts;
  const world = () => seat.leadership?.loop.world();
  const now = () => MONOTONIC_CLOCK.now();
  const traffic = new Traffic();
  const happenings = new Happenings(() => besideOf(parts));
  const live = new Live((topic) => look(topic, { seat, traffic, happenings }), now);
  const playground = new Playground(settings.console.endpoint, tls?.ca);
  const handler = consoleHandler({
    cluster: settings.cluster,
    version: VERSION,
    live,
    playground,
    history: (model) => traffic.history(model),
    preview: (asked) => preview(seat.demand("failed_precondition").loop.world(), asked, now()),
    routes: parts.routes,
    sessions: tls === undefined || settings.tokensFile === undefined
      ? undefined
      : new Sessions({ secret: tls.key, tokens: parts.tokens, now: Date.now }),
  });
  const { listen } = settings.console;
  const local = listen === undefined ? undefined : await startConsoleListener(
    listen,
    (request, response) => handler(request, response, loopbackDoor()),
  );
  if (local !== undefined) log.info("Console", { url: `http://${formatAddress(local.address)}` });
  const timers = [
    setInterval(() => traffic.sample(world(), now()), SAMPLE_EVERY_MS),
    setInterval(() => happenings.look(world(), now()), LOOK_EVERY_MS),
    setInterval(() => happenings.begin(world(), now()), BEGIN_WITHIN_MS),
  ];
  const door = tls === undefined ? loopbackDoor : adminDoor(settings, tls);
  return {
    local: local?.address,
    traffic,
    happenings,
    consoles: () => live.size,
    answer: (request, response, peer) => handler(request, response, door(peer)),
    async close() {
      for (const timer of timers) clearInterval(timer);
      live.close();
      playground.close();
      await local?.close();
    },
  };
}

/** What of this control may be wrong, beside the world. */
function besideOf({ settings, seat, certificates, own }: ConsoleParts): Beside {
  const { leadership, standing } = seat;
  const unknown = { file: settings.catalogFile, state: "applied", detail: "" } as const;
  return {
    certificates: certificates(),
    own: own(),
    wallMs: Date.now(),
    control: settings.name,
    catalogFile: leadership?.catalogWatch.status ?? unknown,
    storeAway: standing.away,
    dropped: leadership?.dropped(),
  };
}

function loopbackDoor(): Door {
  return { scheme: "http", hosts: LOOPBACK_HOSTS, known: LOCAL };
}

/** Who shows an operator's certificate is known by it, and may do everything. */
function adminDoor({ cluster }: Settings, tls: TlsMaterial): (peer: Peer) => Door {
  const hosts = hostsOf(tls.cert);
  return ({ identity }) => ({
    scheme: "https",
    hosts,
    known: identity?.role === "operator" && identity.cluster === cluster
      ? { name: identity.name, role: "admin" }
      : undefined,
  });
}

interface Sources {
  readonly seat: Seat;
  readonly traffic: Traffic;
  readonly happenings: Happenings;
}

const VIEWS: Readonly<
  Partial<Record<Topic, (world: World, now: number) => ReadonlyMap<string, unknown>>>
> = {
  nodes: nodeItems,
  models: modelItems,
  replicas: replicaItems,
  routers: routerItems,
  decisions: decisionItems,
};

/** A control that stands by knows of nothing but who leads. */
function look(topic: Topic, { seat, traffic, happenings }: Sources): ReadonlyMap<string, unknown> {
  const loop = seat.leadership?.loop;
  const now = MONOTONIC_CLOCK.now();
  if (topic === "traffic") return traffic.latest();
  if (topic === "events") return happenings.events();
  if (topic === "status") {
    const item = loop === undefined
      ? standbyItem(whoLeads(seat.standing))
      : statusItem(loop.world(), now);
    return new Map([["control", item]]);
  }
  return loop === undefined ? new Map() : VIEWS[topic]?.(loop.world(), now) ?? new Map();
}
