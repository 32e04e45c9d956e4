/**
 * The console's side of HTTP: its page, who looks, what is pushed to them, and the calls that they
 * make. Calls are those of the admin API, under the role that the same table gives a token; the page
 * can do nothing that `heddle` cannot.
 */
import { type ConnectRouter, createContextValues, type Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { logger } from "@heddle/common/log";
import { answerErrors, type HttpHandler, PEER } from "@heddle/common/rpc_server";
import { HeddleError } from "@heddle/proto/error";
import { z } from "zod";
import { demandHolder, TOKEN_HOLDER, type TokenHolder } from "../identity/operators.ts";
import {
  header,
  readBody,
  readJson,
  sendError,
  sendJson,
  type WebRequest,
  type WebResponse,
} from "./http/answer.ts";
import { assetAt } from "./http/assets.ts";
import type { Playground } from "./chat.ts";
import { refusalOf, SECURITY_HEADERS } from "./http/guard.ts";
import { eventStream, topicsOf } from "./http/event_stream.ts";
import type { Live } from "./live.ts";
import { CLOSED_SESSION, type Sessions } from "./http/session.ts";
import { ALL_MODELS, type Preview, type TrafficHistory, type Visit } from "./wire.ts";

const log = logger("console");

const RPC_PREFIX = "/console/rpc";

export interface ConsoleOptions {
  readonly cluster: string;
  readonly version: string;
  readonly live: Live;
  /** Of a model, or of all. */
  readonly history: (model: string) => TrafficHistory;
  /** Throws while this control does not lead. */
  readonly preview: (asked: unknown) => Promise<Preview>;
  readonly playground: Playground;
  /** The admin API's services. */
  readonly routes: (router: ConnectRouter) => void;
  /** Undefined where nobody can log in: then only who is known otherwise is let in. */
  readonly sessions: Sessions | undefined;
}

/** Where a request came in. */
export interface Door {
  readonly scheme: "http" | "https";
  /** Names and addresses under which it is reached. */
  readonly hosts: readonly string[];
  /** Who comes through here without a session; undefined for nobody. */
  readonly known: TokenHolder | undefined;
}

/** Answers everything that is not an RPC of the admin listener itself. */
export type ConsoleHandler = (request: WebRequest, response: WebResponse, door: Door) => void;

type Route = (
  request: WebRequest,
  response: WebResponse,
  visit: { readonly url: URL; readonly holder: TokenHolder; readonly canLogOut: boolean },
) => Promise<void> | void;

/** Makes the handler. It keeps nothing but what `options` has. */
export function consoleHandler(options: ConsoleOptions): ConsoleHandler {
  const callers = new WeakMap<WebRequest, TokenHolder>();
  const rpc = rpcHandler(options, callers);
  const routes = routesOf(options);
  return (request, response, door) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const answer = async () => {
      const url = new URL(request.url ?? "/", "http://console");
      // A call that this version does not know is not found, as it was before there was a console.
      if (!/^\/(?:console(?:\/|$)|$)/.test(url.pathname)) throw nothingHere();
      demandOwnPage(request, door);
      if (sendFile(request, response, url.pathname)) return;
      if (await session(request, response, { url, options, door })) return;
      const holder = door.known ?? options.sessions?.holder(header(request, "cookie"));
      if (holder === undefined) {
        throw new HeddleError("unauthenticated", "Log in first: no session, or it has ended");
      }
      if (url.pathname.startsWith(`${RPC_PREFIX}/`)) {
        callers.set(request, holder);
        return rpc(request, response);
      }
      const route = routes[`${request.method} ${url.pathname}`];
      if (route === undefined) throw nothingHere();
      await route(request, response, { url, holder, canLogOut: door.known === undefined });
    };
    answer().catch((error: unknown) => {
      if (!(error instanceof HeddleError)) log.error("Request failed", { error });
      if (!response.headersSent) sendError(response, error);
      else response.end();
    });
  };
}

function nothingHere(): HeddleError {
  return new HeddleError("not_found", "There is nothing here");
}

function demandOwnPage(request: WebRequest, door: Door): void {
  const authority = ":authority" in request.headers ? request.headers[":authority"] : undefined;
  const refused = refusalOf({
    method: request.method ?? "GET",
    host: header(request, "host") ?? (typeof authority === "string" ? authority : undefined),
    origin: header(request, "origin"),
    fetchSite: header(request, "sec-fetch-site"),
  }, door);
  if (refused === undefined) return;
  throw new HeddleError("permission_denied", `Refused: ${refused}`);
}

function sendFile(request: WebRequest, response: WebResponse, path: string): boolean {
  if (request.method !== "GET" && request.method !== "HEAD") return false;
  if (path === "/" || path === "/console") {
    response.writeHead(302, { location: "/console/" });
    response.end();
    return true;
  }
  const file = assetAt(path, {
    encodings: header(request, "accept-encoding"),
    known: header(request, "if-none-match"),
  });
  if (file === undefined) return false;
  response.writeHead(file.status, { ...file.headers, "content-length": file.body.length });
  response.end(request.method === "HEAD" ? new Uint8Array() : file.body);
  return true;
}

const loginSchema = z.strictObject({ token: z.string() });

/** Logging in and out, which comes before anybody is known. */
async function session(
  request: WebRequest,
  response: WebResponse,
  { url, options, door }: {
    readonly url: URL;
    readonly options: ConsoleOptions;
    readonly door: Door;
  },
): Promise<boolean> {
  const { sessions } = options;
  if (request.method !== "POST") return false;
  if (url.pathname === "/console/logout") {
    response.setHeader("set-cookie", CLOSED_SESSION);
    sendJson(response, 200, {});
    return true;
  }
  if (url.pathname !== "/console/login") return false;
  const { data } = loginSchema.safeParse(await readJson(request));
  const cookie = door.scheme === "https"
    ? await sessions?.open(data?.token.trim() ?? "")
    : undefined;
  if (cookie === undefined) {
    throw new HeddleError(
      "unauthenticated",
      sessions === undefined
        ? "Cannot log in: this control has no tokens. Set admin.tokens_file in control.yaml"
        : "Cannot log in: nobody has this token",
    );
  }
  response.setHeader("set-cookie", cookie);
  sendJson(response, 200, {});
  return true;
}

function routesOf(options: ConsoleOptions): Readonly<Record<string, Route>> {
  const { live, playground } = options;
  return {
    "GET /console/session"(_request, response, { holder, canLogOut }) {
      const { cluster, version } = options;
      const visit: Visit = {
        ...holder,
        canLogOut,
        cluster,
        version,
        playground: playground.endpoint !== undefined,
      };
      sendJson(response, 200, visit);
    },
    "GET /console/live"(_request, response, { url }) {
      const follow = eventStream(response);
      const leave = live.follow(topicsOf(url.searchParams.get("topics")), follow.sink);
      if (leave === undefined) {
        throw new HeddleError(
          "exhausted",
          "Cannot show anything: control stops, or too many consoles are open",
        );
      }
      follow.onGone(leave);
    },
    "GET /console/traffic"(_request, response, { url }) {
      sendJson(response, 200, options.history(url.searchParams.get("model") ?? ALL_MODELS));
    },
    async "POST /console/preview"(request, response, { holder }) {
      demandHolder(holder, "Drain");
      sendJson(response, 200, await options.preview(await readJson(request)));
    },
    async "POST /console/chat"(request, response, { holder }) {
      demandHolder(holder, "Drain");
      await chat(request, response, playground);
    },
  };
}

async function chat(
  request: WebRequest,
  response: WebResponse,
  playground: Playground,
): Promise<void> {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const key = header(request, "x-heddle-key");
  const body = await readBody(request);
  await playground.send(body, key === undefined ? undefined : `Bearer ${key}`, {
    signal: gone.signal,
    begin: (status, type) => void response.writeHead(status, { "content-type": type }),
    chunk: (bytes) =>
      new Promise((resolve, reject) => {
        gone.signal.addEventListener("abort", () => reject(gone.signal.reason), { once: true });
        response.write(bytes, () => resolve());
      }),
  });
  response.end();
}

function rpcHandler(
  { routes }: ConsoleOptions,
  callers: WeakMap<WebRequest, TokenHolder>,
): HttpHandler {
  return connectNodeAdapter({
    routes,
    requestPathPrefix: RPC_PREFIX,
    contextValues: (request) =>
      createContextValues()
        .set(TOKEN_HOLDER, callers.get(request))
        .set(PEER, { identity: undefined, certificate: undefined, address: "" }),
    interceptors: [answerErrors, demandRole],
    acceptCompression: [],
  });
}

const demandRole: Interceptor = (next) => async (request) => {
  const holder = request.contextValues.get(TOKEN_HOLDER);
  const { name } = request.method;
  if (holder === undefined) throw new HeddleError("unauthenticated", `Cannot call ${name}`);
  demandHolder(holder, name);
  return await next(request);
};
