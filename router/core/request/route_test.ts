import { deepEqual, equal } from "node:assert/strict";
import { matchRoute } from "./route.ts";

function found(method: string, target: string): string {
  const match = matchRoute(method, target);
  if (match.kind !== "route") return match.kind;
  const { route } = match;
  return route.kind === "inference" ? route.name : route.kind === "model" ? route.id : route.kind;
}

Deno.test("matchRoute() knows its paths and nothing else", () => {
  const cases: [method: string, target: string, want: string][] = [
    ["POST", "/v1/chat/completions", "chat_completions"],
    ["POST", "/v1/chat/completions?beta=true", "chat_completions"],
    ["POST", "http://host:1/v1/completions", "completions"],
    ["POST", "/v1/embeddings", "embeddings"],
    ["POST", "/tokenize", "tokenize"],
    ["POST", "/detokenize", "detokenize"],
    ["POST", "/v1/responses", "responses"],
    ["POST", "/v1/messages?beta=true", "messages"],
    ["POST", "/v1/messages/count_tokens?beta=true", "count_tokens"],
    ["POST", "/v1/audio/transcriptions", "transcriptions"],
    ["POST", "/v1/audio/translations", "translations"],
    ["POST", "/v1/rerank", "rerank"],
    ["POST", "/v2/rerank", "rerank"],
    ["POST", "/rerank", "rerank"],
    ["POST", "/v1/score", "score"],
    ["POST", "/score", "score"],
    ["GET", "/v1/responses/resp_1", "no_route"],
    ["POST", "/v1/responses/resp_1/cancel", "no_route"],
    ["POST", "/v1/messages/batches", "no_route"],
    ["GET", "/v1/models", "models"],
    ["GET", "/health", "health"],
    ["HEAD", "/ready", "ready"],
    ["POST", "/invocations", "no_route"],
    ["POST", "/v1/chat/completions/", "no_route"],
    ["POST", "/v1/chat/../chat/completions", "no_route"],
    ["POST", "/v1%2fchat/completions", "no_route"],
    ["POST", "//v1/chat/completions", "no_route"],
    ["GET", "/metrics", "no_route"],
    ["GET", "/", "no_route"],
    ["GET", "*", "no_route"],
    ["GET", "", "no_route"],
    ["GET", "/v1/models/", "no_route"],
    ["GET", "/v1/models/%zz", "no_route"],
    ["GET", "/v1/chat/completions", "method_not_allowed"],
    ["DELETE", "/v1/models", "method_not_allowed"],
  ];
  for (const [method, target, want] of cases) equal(found(method, target), want, target);
});

Deno.test("matchRoute() takes a model's name as the whole tail, decoded once", () => {
  equal(found("GET", "/v1/models/a%2Fb:free"), "a/b:free");
  equal(found("GET", "/v1/models/a/b:free"), "a/b:free");
  equal(found("GET", "/v1/models/a%252Fb"), "a%2Fb");
  equal(found("GET", "/v1/models/a?x=/b"), "a");
});

Deno.test("matchRoute() says which methods a path takes", () => {
  deepEqual(matchRoute("GET", "/v1/embeddings"), {
    kind: "method_not_allowed",
    methods: ["POST"],
    errors: "openai",
  });
});

Deno.test("matchRoute() says in which envelope clients of a path read a refusal", () => {
  const errors = (method: string, target: string) => {
    const match = matchRoute(method, target);
    return match.kind === "route" ? "a route" : match.errors;
  };
  deepEqual(errors("GET", "/v1/messages"), "anthropic");
  deepEqual(errors("POST", "/v1/messages/batches"), "anthropic");
  deepEqual(errors("GET", "/v1/responses/resp_1"), "responses");
  deepEqual(errors("GET", "/v1/messagesx"), "openai");
});

Deno.test("matchRoute() passes on of a query only what the Messages API has", () => {
  const query = (target: string) => {
    const match = matchRoute("POST", target);
    return match.kind === "route" && match.route.kind === "inference" ? match.route.query : "-";
  };
  equal(query("/v1/messages?beta=true"), "?beta=true");
  equal(query("/v1/messages?x=1&beta=true&y=2"), "?beta=true");
  equal(query("/v1/messages?beta=true%0d"), "");
  equal(query("/v1/messages"), "");
  equal(query("/v1/chat/completions?beta=true"), "");
});
