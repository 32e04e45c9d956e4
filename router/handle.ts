/** From a request on the listener to what answers it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { spawnTask } from "@heddle/common/task";
import type { ErrorShape } from "./core/engine_error_shape.ts";
import { type ModelCard, modelCard, modelCards } from "./core/fleet/model_cards.ts";
import type { Model } from "./core/fleet/endpoint.ts";
import { corsHeaders, type CorsPolicy, preflight } from "./core/policy/cors.ts";
import { clientAddress, type Network } from "./core/request/network.ts";
import type { Caller } from "./core/request/caller.ts";
import { type Outcome, refuse, type Step } from "./core/request/outcome.ts";
import { matchRoute, type Route, type RouteMatch } from "./core/request/route.ts";
import { mayUseModel } from "./core/tenancy/key.ts";
import { Reply } from "./edge/client/reply.ts";
import { requestIdOf } from "./edge/client/request_id.ts";
import { rescue } from "./edge/client/rescue.ts";
import type { OwnAccountSource } from "./tenancy/own_account.ts";
import { type Exchange, modelNotFound, NOT_READY, serve, type ServeParts } from "./serve.ts";

export interface HandleParts extends ServeParts {
  /** Why this router should get no traffic; undefined when it should. */
  readonly notReady: () => string | undefined;
  readonly heartbeatMs: number;
  readonly own: OwnAccountSource;
  readonly cors: CorsPolicy;
  readonly trustedProxies: readonly Network[];
}

/** The holder of a key sees what it may do, and changes nothing. */
const KEYS_ARE_OPERATORS = refuse({
  reason: "read_only",
  message: "Keys, limits and roles are changed by operators, not through this endpoint; " +
    "GET /v1/keys/self, /v1/limits and /v1/usage tell what a key may do and has used",
});

const TEXT = { "content-type": "text/plain; charset=utf-8" } as const;

const NO_ROUTE =
  "There is nothing at this path: the API begins with /v1, as in /v1/chat/completions";

/** Answers one request. */
export function handle(
  request: IncomingMessage,
  response: ServerResponse,
  parts: HandleParts,
): void {
  const reply = new Reply(response, parts.heartbeatMs);
  const requestId = requestIdOf(request.headers["x-request-id"]);
  reply.setHeader("x-request-id", requestId);
  setHeaders(reply, corsHeaders(parts.cors, request.headers));
  const match = matchRoute(request.method ?? "", request.url ?? "");
  // What clients of the Messages API call the same thing.
  if (errorsOf(match) === "anthropic") reply.setHeader("request-id", requestId);
  switch (match.kind) {
    case "no_route":
      return tell(reply, refuse({ reason: "no_route", message: NO_ROUTE }), match.errors);
    case "method_not_allowed": {
      const allowed = request.method === "OPTIONS"
        ? preflight(parts.cors, request.headers, match.methods)
        : undefined;
      // A preflight carries no key, and is never more than what any caller may know.
      if (allowed !== undefined) return reply.whole(204, allowed, "");
      reply.setHeader("allow", match.methods.join(", "));
      return tell(
        reply,
        refuse({
          reason: "method_not_allowed",
          message: `${request.method} is not allowed here: want ${match.methods.join(" or ")}`,
        }),
        match.errors,
      );
    }
    case "route":
      return follow(match.route, {
        request,
        reply,
        requestId,
        clientAddress: addressOf(request, parts.trustedProxies),
      }, parts);
  }
}

function addressOf({ socket, headers }: IncomingMessage, trusted: readonly Network[]): string {
  const forwarded = headers["x-forwarded-for"];
  // Several headers of this name are one list, in their order.
  const list = typeof forwarded === "string" ? forwarded : forwarded?.join(",");
  return clientAddress(socket.remoteAddress ?? "", list, trusted);
}

function setHeaders(reply: Reply, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) reply.setHeader(name, value);
}

function errorsOf(match: RouteMatch): ErrorShape {
  if (match.kind !== "route") return match.errors;
  return match.route.kind === "inference" ? match.route.errors : "openai";
}

type Incoming = Omit<Exchange, "route">;

function follow(route: Route, incoming: Incoming, parts: HandleParts): void {
  const { reply } = incoming;
  switch (route.kind) {
    case "inference":
      return spawnTask("request", () => serve({ ...incoming, route }, parts));
    case "health":
      return reply.whole(200, TEXT, "ok\n");
    case "ready": {
      const reason = parts.notReady();
      return reply.whole(reason === undefined ? 200 : 503, TEXT, `${reason ?? "ready"}\n`);
    }
    default: {
      const caller = authenticate(incoming, route, parts);
      return caller.kind === "end"
        ? tell(reply, caller)
        : answer(route, incoming, { caller: caller.value, parts });
    }
  }
}

type OwnRoute = Exclude<Route, { readonly kind: "inference" | "health" | "ready" }>;

function authenticate(
  { request, reply, clientAddress }: Incoming,
  route: OwnRoute,
  { keyring, limits }: HandleParts,
): Step<Caller> {
  const from = { address: clientAddress, path: pathOf(route) };
  const caller = keyring().authenticate(request.headersDistinct, from);
  if (caller.kind === "next") setHeaders(reply, limits.headers(caller.value));
  return caller;
}

/** What a key must be allowed to use; undefined: its holder may always ask. */
function pathOf(route: OwnRoute): string | undefined {
  switch (route.kind) {
    case "models":
      return "/v1/models";
    case "model":
      return `/v1/models/${route.id}`;
    case "own":
    case "keys":
      return undefined;
  }
}

/** Answers what the router knows by itself. */
function answer(
  route: OwnRoute,
  { request, reply }: Incoming,
  { caller, parts }: { readonly caller: Caller; readonly parts: HandleParts },
): void {
  const { endpoints, own } = parts;
  switch (route.kind) {
    case "keys":
      return tell(reply, KEYS_ARE_OPERATORS);
    case "own":
      return spawnTask("own account", async () => {
        const told = await own.tell(route.what, { caller, target: request.url ?? "" });
        return told.kind === "end" ? tell(reply, told) : sendJson(reply, told.value);
      });
    case "models":
    case "model": {
      if (!endpoints.informed) return tell(reply, NOT_READY);
      const mayUse = (model: Model) => caller.key === undefined || mayUseModel(caller.key, model);
      return route.kind === "models"
        ? sendJson(reply, { object: "list", data: modelCards(endpoints.table, mayUse) })
        : sendModel(reply, route.id, modelCard(endpoints.table, route.id, mayUse));
    }
  }
}

function sendModel(reply: Reply, id: string, card: ModelCard | undefined): void {
  return card === undefined ? tell(reply, modelNotFound(id)) : sendJson(reply, card);
}

function sendJson(reply: Reply, value: unknown): void {
  reply.whole(200, { "content-type": "application/json" }, JSON.stringify(value));
}

function tell(
  reply: Reply,
  { outcome }: { readonly outcome: Outcome },
  shape: ErrorShape = "openai",
): void {
  rescue(reply, outcome, { shape });
}
