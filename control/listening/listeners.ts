/** Where control is reached: by agents and routers, by operators, and by their browsers. */
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { struckWhy } from "@heddle/common/deny_list";
import type { ShownCertificate } from "@heddle/common/identity";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { readCertificate } from "@heddle/common/pki";
import { type RpcServer, type RpcServerOptions, startRpcServer } from "@heddle/common/rpc_server";
import { errorText, HeddleError } from "@heddle/proto/error";
import { AdminService } from "@heddle/proto/gen/admin";
import { AgentService } from "@heddle/proto/gen/agent";
import { AttachService, JoinTokenService } from "@heddle/proto/gen/attach";
import { CapacityService } from "@heddle/proto/gen/capacity";
import { CertificateService, DenyListService, RenewalService } from "@heddle/proto/gen/identity";
import { LiveService } from "@heddle/proto/gen/live";
import { RouterService } from "@heddle/proto/gen/router";
import { TenancyService } from "@heddle/proto/gen/tenancy";
import { WeightsService } from "@heddle/proto/gen/weights";
import { capacityOf, routerTenancyOf, tenancyOf, weightsOf } from "../calls.ts";
import { MONOTONIC_CLOCK } from "../clock.ts";
import type { Settings } from "../config.ts";
import { adminRpc } from "../edge/admin/admin_rpc.ts";
import { operatorName, type Realm } from "../edge/caller.ts";
import { demandOperator, parseTokens, type Tokens } from "../edge/identity/operators.ts";
import { liveRpc } from "../edge/live/live_rpc.ts";
import { renewalRpc } from "../edge/identity/renewal.ts";
import type { DenyList } from "../edge/identity/deny_list.ts";
import { denyListRpc, strikesRpc } from "../edge/identity/strikes.ts";
import type { Store } from "../edge/store/store.ts";
import type { Seat } from "../seat.ts";
import { attachOf, joinTokensOf } from "./attach.ts";
import { serveConsole, type ServedConsole } from "./console.ts";

/** How long streams may take to end when control stops: their ends are told at once. */
const CLOSE_GRACE_MS = 2_000;

export interface Listeners {
  readonly agents: RpcServer;
  readonly admin: RpcServer;
  /** Undefined: nothing can attach. */
  readonly join: RpcServer | undefined;
  readonly console: ServedConsole;
  /** Throws `invalid_input` when the tokens cannot be read; those of before stay. */
  reload(tls: TlsMaterial): Promise<void>;
  /** Of all but the console, which is closed before. */
  close(): Promise<void>;
}

interface ListenerParts {
  readonly seat: Seat;
  readonly realm: Realm;
  readonly store: Store;
  readonly denied: DenyList;
}

/** Starts all of them or, when it throws, none. */
export async function startListeners(
  settings: Settings,
  tls: TlsMaterial | undefined,
  { seat, realm, store, denied }: ListenerParts,
): Promise<Listeners> {
  let tokens = await readTokens(settings);
  let own = tls && readCertificate(tls.cert);
  const refuses = (shown: ShownCertificate) => struckWhy(denied.struck, shown);
  const opened: RpcServer[] = [];
  const serve = async (options: Omit<RpcServerOptions, "tls">) => {
    const server = await startRpcServer({ tls, refuses, ...options });
    opened.push(server);
    return server;
  };
  const certificates = () => opened.flatMap((server) => server.peers());
  const shown = { seat, realm, store, certificates, denied, page: () => page };
  const adminRoutes = operatorRoutes(settings, shown);
  const page: ServedConsole = await serveConsole({
    settings,
    seat,
    tls,
    tokens: () => tokens,
    certificates,
    own: () => own,
    routes: adminRoutes,
  });
  // Ends connections of those who were struck by now.
  const unheed = denied.onChange(() => opened.forEach((server) => server.recheck()));
  const close = async (graceMs: number) => {
    unheed();
    await Promise.all(opened.map((server) => server.close(graceMs)));
  };
  try {
    const agents = await serve({
      listen: settings.agents,
      ...(tls === undefined ? {} : { roles: ["agent", "router"] }),
      routes: fleetRoutes(settings, { seat, denied }, page.traffic),
    });
    const admin = await serve({
      listen: settings.admin,
      ...admissionOf(settings, () => tokens),
      routes: adminRoutes,
      fallback: page.answer,
    });
    const join = settings.join && await serve({
      listen: settings.join,
      certificateOptional: true,
      routes: (to) => void to.service(AttachService, attachOf(seat)),
    });
    return {
      agents,
      admin,
      join,
      console: page,
      async reload(next) {
        for (const server of opened) server.reload(next);
        own = readCertificate(next.cert);
        tokens = await readTokens(settings);
      },
      close: () => close(CLOSE_GRACE_MS),
    };
  } catch (error) {
    await page.close();
    await close(0);
    throw error;
  }
}

/** What agents and routers call. */
function fleetRoutes(
  settings: Settings,
  { seat, denied }: Pick<ListenerParts, "seat" | "denied">,
  traffic: ServedConsole["traffic"],
) {
  return (to: ConnectRouter) => {
    to.service(AgentService, agentsOf(seat));
    to.service(RouterService, routersOf(seat, traffic));
    to.service(RenewalService, renewalsOf(seat, settings));
    to.service(DenyListService, denyListRpc(denied, () => void seat.demand("unavailable")));
  };
}

/** What operators call, on either of their listeners. */
function operatorRoutes(
  settings: Settings,
  { seat, realm, store, certificates, denied, page }: {
    readonly seat: Seat;
    readonly realm: Realm;
    readonly store: Store;
    readonly certificates: () => readonly ShownCertificate[];
    readonly denied: DenyList;
    /** Not there before it is served: its own routes are these. */
    readonly page: () => ServedConsole;
  },
): (to: ConnectRouter) => void {
  return (to) => {
    to.service(AdminService, operatorsOf(seat, { realm, certificates }));
    to.service(CertificateService, strikesOf({ seat, realm }, denied));
    to.service(TenancyService, tenancyOf(seat, { realm, store }));
    to.service(JoinTokenService, joinTokensOf(settings, { seat, realm, store }));
    to.service(WeightsService, weightsOf(seat, realm));
    to.service(CapacityService, capacityOf(seat, { realm, store }));
    to.service(LiveService, liveOf(seat, realm, page));
  };
}

/** What operators are shown of the moment. */
function liveOf(
  seat: Seat,
  realm: Realm,
  page: () => ServedConsole,
): ServiceImpl<typeof LiveService> {
  return liveRpc({
    by: (context) => operatorName(context, realm),
    demandLead: () => void seat.demand("failed_precondition"),
    happenings: () => page().happenings,
    traffic: () => page().traffic,
  });
}

/** Who is let in where operators connect. */
function admissionOf(
  { tokensFile, tls }: Settings,
  tokens: () => Tokens,
): Pick<RpcServerOptions, "roles" | "certificateOptional" | "interceptors"> {
  if (tokensFile !== undefined) {
    return { certificateOptional: true, interceptors: [demandOperator(tokens)] };
  }
  return tls === undefined ? {} : { roles: ["operator"] };
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
  denied: DenyList,
): ServiceImpl<typeof CertificateService> {
  const leader = () => seat.demand("failed_precondition");
  return strikesRpc({
    by: (context) => operatorName(context, realm),
    loop: {
      dispatch: (event) => leader().loop.dispatch(event),
      world: () => leader().loop.world(),
    },
    now: Date.now,
    changed: () => denied.changed(),
  });
}

// By the one that leads alone: another may not have heard yet of whom it struck.
function renewalsOf(seat: Seat, settings: Settings): ServiceImpl<typeof RenewalService> {
  const { renew } = renewalRpc({ ...settings, now: Date.now });
  return {
    renew(request, context) {
      seat.demand("unavailable");
      return renew(request, context);
    },
  };
}

// Each call goes to whoever leads at its beginning, and ends when that one does.
function agentsOf(seat: Seat): ServiceImpl<typeof AgentService> {
  return {
    async *connect(requests, context) {
      yield* seat.demand("unavailable").agents.connect(requests, context);
    },
  };
}

function routersOf(
  seat: Seat,
  traffic: ServedConsole["traffic"],
): ServiceImpl<typeof RouterService> {
  const routers = () => seat.demand("unavailable").routers;
  return {
    async *watch(request, context) {
      yield* routers().watch(request, context);
    },
    async report(request, context) {
      const answer = await routers().report(request, context);
      traffic.reported(request.models);
      return answer;
    },
    wake: (request, context) => routers().wake(request, context),
    ...routerTenancyOf(seat),
  };
}

function operatorsOf(
  seat: Seat,
  { realm, certificates }: {
    readonly realm: Realm;
    readonly certificates: () => readonly ShownCertificate[];
  },
): ServiceImpl<typeof AdminService> {
  const leader = () => seat.demand("failed_precondition");
  return adminRpc({
    realm,
    certificates,
    logs: { read: (source, signal) => leader().logs.read(source, signal) },
    loop: {
      dispatch: (event) => leader().loop.dispatch(event),
      world: () => leader().loop.world(),
      now: () => MONOTONIC_CLOCK.now(),
    },
    seat,
    audit: (limit) => leader().audit(limit),
    catalogFile: () => leader().catalogWatch.status,
    superseded: () => leader().catalogWatch.supersede(),
  });
}
