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
  deepEqual(matchRoute("GET", "/v1/embeddings"), { kind: "method_not_allowed", allow: "POST" });
});
