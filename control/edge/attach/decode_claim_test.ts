import { equal, throws } from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { encodeAttachedState } from "@heddle/proto/attached_state";
import { ClaimRequestSchema } from "@heddle/proto/gen/attach";
import { decodeClaim } from "./decode_claim.ts";

function decode(parts: MessageInitShape<typeof ClaimRequestSchema> = {}, isNear = false) {
  const claim = create(ClaimRequestSchema, {
    engineId: "e1",
    state: encodeAttachedState("serving"),
    nodes: [{ index: 0 }],
    ...parts,
  });
  return decodeClaim(claim, isNear);
}

Deno.test("decodeClaim() takes what an agent may say of an engine, and nothing that is control's", () => {
  for (const state of ["assembling", "serving", "degraded"] as const) {
    equal(decode({ state: encodeAttachedState(state) }).state, state);
  }
  for (const state of ["draining", "lost", "unknown"] as const) {
    throws(
      () => decode({ state: encodeAttachedState(state) }),
      /an agent cannot say that it is (?:draining|lost|unknown)/,
    );
  }
});

Deno.test("decodeClaim() reads an endpoint with and without http://", () => {
  equal(decode({ endpoint: "http://10.0.0.7:8000/" }).endpoint, "10.0.0.7:8000");
  equal(decode({ endpoint: "[fd00::1]:80" }).endpoint, "[fd00::1]:80");
  equal(decode({ endpoint: "gpu.example:80" }).endpoint, "gpu.example:80");
  equal(decode().endpoint, "");
  for (const bad of ["10.0.0.7", "10.0.0.7:0x", "http://h:1/v1", "a b:1"]) {
    throws(() => decode({ endpoint: bad }), /cannot read its endpoint/, bad);
  }
  throws(() => decode({ endpoint: "https://h:1" }), /plain HTTP/);
});

Deno.test("decodeClaim() lets nobody afar point control at itself", () => {
  for (
    const own of ["127.0.0.1:9090", "localhost:1", "[::1]:2", "0.0.0.0:1", "169.254.169.254:80"]
  ) {
    throws(() => decode({ endpoint: own }), /each machine itself/, own);
    equal(decode({ endpoint: own }, true).endpoint, own);
  }
});

Deno.test("decodeClaim() refuses names, nodes and texts that make no sense", () => {
  for (const engineId of ["", "a/b", "-a", "a".repeat(129), "a b"]) {
    throws(() => decode({ engineId }), /its name is not one/);
  }
  equal(decode({ engineId: "i-0abc:7.x" }).engineId, "i-0abc:7.x");
  throws(() => decode({ nodes: [] }), /it has 0 nodes/);
  throws(() => decode({ nodes: [{ index: 1 }, { index: 1 }] }), /named twice/);
  throws(() => decode({ provider: "x".repeat(501) }), /longer than 500/);
  throws(() => decode({ nodes: [{ index: 0, hostId: "x".repeat(501) }] }), /longer than 500/);
});
