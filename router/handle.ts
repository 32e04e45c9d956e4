/** From a request on the listener to what answers it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { spawnTask } from "@heddle/common/task";
import type { ErrorShape } from "./core/engine_error_shape.ts";
import { modelCard, modelCards } from "./core/fleet/model_cards.ts";
import type { Table } from "./core/fleet/table.ts";
import { corsHeaders, type CorsPolicy, preflight } from "./core/policy/cors.ts";
import { clientAddress, type Network } from "./core/request/network.ts";
import { type Outcome, refuse } from "./core/request/outcome.ts";
import { matchRoute, type Route, type RouteMatch } from "./core/request/route.ts";
import { Reply } from "./edge/client/reply.ts";
import { requestIdOf } from "./edge/client/request_id.ts";
import { rescue } from "./edge/client/rescue.ts";
import { type Exchange, modelNotFound, NOT_READY, serve, type ServeParts } from "./serve.ts";

export interface HandleParts extends ServeParts {
  /** Why this router should get no traffic; undefined when it should. */
  readonly notReady: () => string | undefined;
  readonly heartbeatMs: number;
  readonly cors: CorsPolicy;
  readonly trustedProxies: readonly Network[];
}

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
  const { request, reply } = incoming;
  switch (route.kind) {
    case "inference":
      return spawnTask("request", () => serve({ ...incoming, route }, parts));
    case "health":
      return reply.whole(200, TEXT, "ok\n");
    case "ready": {
      const reason = parts.notReady();
      return reply.whole(reason === undefined ? 200 : 503, TEXT, `${reason ?? "ready"}\n`);
    }
    case "models":
    case "model": {
      const caller = parts.keyring().authenticate(request.headers);
      if (caller.kind === "end") return tell(reply, caller);
      if (!parts.endpoints.informed) return tell(reply, NOT_READY);
      return route.kind === "models"
        ? sendJson(reply, { object: "list", data: modelCards(parts.endpoints.table) })
        : sendModel(reply, route.id, parts.endpoints.table);
    }
  }
}

function sendModel(reply: Reply, id: string, table: Table): void {
  const card = modelCard(table, id);
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
