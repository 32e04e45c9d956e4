/** A request and its record, as the router has them between its stages. */
import { matchRoute } from "../../../router/core/request/route.ts";
import { parseRequest } from "../../../router/core/request/request.ts";
import type { UsageRecord } from "../../../router/core/request/usage_record.ts";

const BODY = JSON.stringify({
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content: "word ".repeat(200) }],
});

function parsed() {
  const match = matchRoute("POST", "/v1/chat/completions");
  if (match.kind !== "route" || match.route.kind !== "inference") throw new Error("no route");
  const request = parseRequest(match.route, new TextEncoder().encode(BODY), {
    controlFields: "strip",
    mediaUrls: { fetch: "data", hosts: [] },
  });
  if (request.kind === "end") throw new Error(request.outcome.reason);
  return request.value;
}

/** What the stage of limits is given besides the caller. */
export const BASIC = {
  request: parsed(),
  model: {
    name: "m",
    aliases: [],
    fallbacks: [],
    routingProfile: "",
    reason: "",
    wakeable: false,
    createdS: 0,
  },
} as const;

export const RECORD: UsageRecord = {
  requestId: "req_0123456789abcdef",
  caller: "",
  key: undefined,
  clientAddress: "10.0.0.1",
  route: "chat_completions",
  modelAsked: "m",
  model: "m",
  replicaId: "r-1",
  pool: "",
  outcome: "ok",
  status: 200,
  stream: false,
  tries: 1,
  attempts: [{
    replicaId: "r-1",
    model: "m",
    outcome: "ok",
    usage: { promptTokens: 200, completionTokens: 100 },
    estimated: false,
    served: true,
    engineMs: 100,
    gpus: 1,
  }],
  usage: undefined,
  estimated: false,
  costMicro: 0,
  band: "silver",
  routingProfile: "chat",
  queueMs: 0,
  durationMs: 100,
  firstContentMs: 20,
};
