import { equal } from "node:assert/strict";
import { refusalOf } from "./guard.ts";

const DOOR = { scheme: "https", hosts: ["control-1", "10.0.0.1", "::1"] } as const;

Deno.test("refusalOf() lets the console's own page through, under each of its names", () => {
  for (const host of ["control-1:9090", "10.0.0.1", "[::1]:9090", "CONTROL-1:9090"]) {
    const from = { host, origin: `https://${host}`, fetchSite: "same-origin" };
    equal(refusalOf({ method: "POST", ...from }, DOOR), undefined, host);
    const typed = { host, origin: undefined, fetchSite: "none" };
    equal(refusalOf({ method: "GET", ...typed }, DOOR), undefined, host);
  }
});

Deno.test("refusalOf() refuses other names, other origins, and decisions from nowhere", () => {
  const own = { method: "POST", host: "control-1:9090", origin: "https://control-1:9090" };
  const cases = [
    [{ ...own, host: "evil.example", origin: "https://evil.example" }, /is reached as control-1/],
    [{ ...own, host: undefined }, /is not ""/],
    [{ ...own, origin: "https://evil.example" }, /comes from https:\/\/evil/],
    [{ ...own, origin: "http://control-1:9090" }, /comes from http:/],
    [{ ...own, origin: "null" }, /comes from null/],
    [{ ...own, origin: undefined }, /does not say/],
    [{ ...own, fetchSite: "same-site" }, /another site/],
    [{ ...own, method: "GET", origin: "https://evil.example" }, /comes from https:\/\/evil/],
  ] as const;
  for (const [request, why] of cases) {
    const refused = refusalOf({ fetchSite: undefined, ...request }, DOOR);
    equal(why.test(refused ?? ""), true, `${JSON.stringify(request)}: ${refused}`);
  }
});
