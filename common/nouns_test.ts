import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { formatAddress, isLoopback, parseAddress } from "./address.ts";
import { backoffMs } from "./backoff.ts";
import { formatDurationMs, parseDurationMs, parseSizeBytes } from "./duration.ts";
import { formatIdentity, identityOfSubjectAltName, parseIdentity } from "./identity.ts";

Deno.test("parseAddress() reads what formatAddress() writes", () => {
  for (const text of ["127.0.0.1:80", "[::1]:9090", "node-a.example:1"]) {
    equal(formatAddress(parseAddress(text)), text);
  }
  for (const bad of ["", "host", "host:", ":80", "::1:80", "host:99999", "a b:1", "http://x:1"]) {
    throws(() => parseAddress(bad), /Cannot read address/, bad);
  }
});

Deno.test("isLoopback() trusts no name but localhost", () => {
  deepEqual(
    ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"].filter(isLoopback).length,
    5,
  );
  deepEqual(["0.0.0.0", "::", "10.0.0.1", "127.evil.example", "1270.0.0.1"].filter(isLoopback), []);
});

Deno.test("parseDurationMs() and parseSizeBytes() refuse what has no unit", () => {
  deepEqual(["5s", "20m", "1h30m", "1.5s", "250ms"].map(parseDurationMs), [
    5_000,
    1_200_000,
    5_400_000,
    1_500,
    250,
  ]);
  deepEqual(["", "5", "s", "5 s", "-5s", "5m s"].map(parseDurationMs), Array(6).fill(undefined));
  deepEqual(["80GiB", "1KB", "12 MiB", "3"].map(parseSizeBytes), [
    80 * 2 ** 30,
    1_000,
    12 * 2 ** 20,
    undefined,
  ]);
  deepEqual([340, 12_000, 252_000, 11_100_000, 187_200_000].map(formatDurationMs), [
    "340ms",
    "12s",
    "4m12s",
    "3h5m",
    "2d4h",
  ]);
});

Deno.test("backoffMs() doubles, is bounded, jitters by id, and is the same every time", () => {
  const bounds = { firstMs: 10_000, maxMs: 600_000 };
  for (let attempt = 1; attempt < 40; attempt++) {
    const full = Math.min(10_000 * 2 ** (attempt - 1), 600_000);
    const ms = backoffMs("llama", attempt, bounds);
    ok(ms >= full / 2 && ms <= full, `${attempt}: ${ms}`);
    equal(ms, backoffMs("llama", attempt, bounds));
  }
  ok(new Set(["a", "b", "c", "d"].map((id) => backoffMs(id, 3, bounds))).size > 2);
});

Deno.test("parseIdentity() accepts exactly our form", () => {
  const identity = { cluster: "prod", role: "agent", name: "gpu-01" } as const;
  deepEqual(parseIdentity(formatIdentity(identity)), identity);
  for (
    const bad of [
      "spiffe://heddle/prod/agent/",
      "spiffe://heddle/prod/root/a",
      "spiffe://other/prod/agent/a",
      "spiffe://heddle/prod/agent/a/b",
      "spiffe://heddle/prod/agent/../b",
      "spiffe://heddle/prod/agent/a, DNS:b",
    ]
  ) equal(parseIdentity(bad), undefined, bad);
});

Deno.test("identityOfSubjectAltName() believes one URI and no imitation", () => {
  const uri = "URI:spiffe://heddle/prod/agent/a";
  equal(identityOfSubjectAltName(`DNS:x, ${uri}, IP Address:127.0.0.1`)?.name, "a");
  equal(identityOfSubjectAltName(`${uri}, URI:spiffe://heddle/prod/control/a`), undefined);
  equal(identityOfSubjectAltName(`DNS:"x, ${uri}"`), undefined);
  equal(identityOfSubjectAltName(undefined), undefined);
});
