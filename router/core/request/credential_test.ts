import { deepEqual } from "node:assert/strict";
import { findCredential, type RequestHeaders } from "./credential.ts";

Deno.test("findCredential() reads every way of showing a key alike", () => {
  const cases: [headers: RequestHeaders, want: string | undefined][] = [
    [{ authorization: "Bearer k1" }, "k1"],
    [{ authorization: "bearer   k1 " }, "k1"],
    [{ "api-key": "k1" }, "k1"],
    [{ "x-api-key": "k1" }, "k1"],
    [{ authorization: "Bearer k1", "x-api-key": "k1" }, "k1"],
    [{}, undefined],
    [{ authorization: "Basic k1" }, undefined],
    [{ authorization: "Bearer " }, undefined],
    [{ authorization: "Bearer k1 k2" }, undefined],
    [{ "api-key": " " }, undefined],
  ];
  for (const [headers, want] of cases) {
    deepEqual(
      findCredential(headers),
      want === undefined ? { kind: "none" } : { kind: "key", key: want },
      JSON.stringify(headers),
    );
  }
});

Deno.test("findCredential() does not choose between two keys", () => {
  deepEqual(findCredential({ authorization: "Bearer k1", "x-api-key": "k2" }), {
    kind: "conflict",
  });
});

Deno.test("findCredential() looks at every header of a name that stands twice", () => {
  for (
    const headers of [
      { authorization: ["Bearer k1", "Bearer k2"] },
      { "x-api-key": ["k1", "k2"] },
      { authorization: ["Basic x", "Bearer k1"], "api-key": ["", "k2"] },
    ]
  ) deepEqual(findCredential(headers), { kind: "conflict" });
  deepEqual(findCredential({ authorization: ["Bearer k1", "Bearer k1"] }), {
    kind: "key",
    key: "k1",
  });
});
