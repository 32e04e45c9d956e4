import { deepEqual } from "node:assert/strict";
import { stagingClaim, stagingPlaces, type StagingReading } from "./staging.ts";

const read = (bytes: number, at: number, directory = "/c"): StagingReading => ({
  kind: "read",
  directory,
  bytes,
  at,
});

Deno.test("stagingClaim() has no rate at first, then one, and zero for what shrinks", () => {
  deepEqual(stagingClaim(read(100, 0), undefined), {
    directory: "/c",
    bytes: 100,
    unavailable: "",
  });
  deepEqual(stagingClaim(read(5_100, 10_000), read(100, 0))?.bytesPerSecond, 500);
  deepEqual(stagingClaim(read(50, 10_000), read(100, 0))?.bytesPerSecond, 0);
});

Deno.test("stagingClaim() makes up no rate between two folders, or after a failure", () => {
  deepEqual(stagingClaim(read(100, 10_000), read(0, 0, "/d"))?.bytesPerSecond, undefined);
  const failed = { kind: "unavailable", directory: "/c", why: "denied" } as const;
  deepEqual(stagingClaim(read(100, 10_000), failed)?.bytesPerSecond, undefined);
  deepEqual(stagingClaim(read(100, 10_000), read(0, 10_000))?.bytesPerSecond, undefined);
});

Deno.test("stagingClaim() tells a place that cannot be read from no place", () => {
  deepEqual(stagingClaim({ kind: "none" }, read(1, 0)), undefined);
  deepEqual(stagingClaim({ kind: "unavailable", directory: "/c", why: "denied" }, read(1, 0)), {
    directory: "/c",
    unavailable: "denied",
  });
});

Deno.test("stagingPlaces() looks only where it is told to, else at the usual places", () => {
  const env = { hubCache: undefined, hfHome: "/hf", home: "/home/a" };
  deepEqual(stagingPlaces("/told", env), ["/told"]);
  deepEqual(stagingPlaces(undefined, env), [
    "/hf",
    "/home/a/.cache/huggingface",
    "/root/.cache/huggingface",
    "/workspace/.cache/huggingface",
  ]);
  const none = { hubCache: "", hfHome: undefined, home: "/root" };
  deepEqual(stagingPlaces(undefined, none).length, 2);
});
