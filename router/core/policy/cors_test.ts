import { deepEqual, equal } from "node:assert/strict";
import { corsHeaders, preflight } from "./cors.ts";

const APP = "https://app.example";
const LISTED = { origins: new Set([APP]) };
const OFF = { origins: new Set<string>() };
const ASK = {
  origin: APP,
  "access-control-request-method": "POST",
  "access-control-request-headers": "Authorization, x-stainless-os,x bad,x-\u0000",
};

Deno.test("corsHeaders() allows the origins that are listed, and no other", () => {
  equal(corsHeaders(LISTED, { origin: APP })["access-control-allow-origin"], APP);
  deepEqual(corsHeaders(LISTED, { origin: "https://app.example.evil" }), { vary: "origin" });
  deepEqual(corsHeaders(LISTED, { origin: "null" }), { vary: "origin" });
  deepEqual(corsHeaders(LISTED, {}), { vary: "origin" });
  deepEqual(corsHeaders(OFF, { origin: APP }), {});
  equal(
    corsHeaders({ origins: new Set(["*"]) }, { origin: "null" })["access-control-allow-origin"],
    "*",
  );
});

Deno.test("preflight() allows the headers that were asked for, if they are headers", () => {
  const answer = preflight(LISTED, ASK, ["POST"]);
  equal(answer?.["access-control-allow-headers"], "authorization, x-stainless-os");
  equal(answer?.["access-control-allow-methods"], "POST");
});

Deno.test("preflight() has nothing to say of other origins, methods or requests", () => {
  equal(preflight(LISTED, { ...ASK, origin: "https://other.example" }, ["POST"]), undefined);
  equal(preflight(OFF, ASK, ["POST"]), undefined);
  equal(preflight(LISTED, ASK, ["GET", "HEAD"]), undefined);
  equal(preflight(LISTED, { origin: APP }, ["POST"]), undefined);
});
