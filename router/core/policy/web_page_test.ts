import { equal } from "node:assert/strict";
import { foreignPage } from "./web_page.ts";

const OFF = { origins: new Set<string>() };
const APP = { origins: new Set(["https://app.example", "app://notes"]) };
const HERE = { host: "127.0.0.1:8080" };

Deno.test("foreignPage() lets pass what no browser sends, and what nobody made a browser send", () => {
  equal(foreignPage(OFF, HERE), undefined);
  equal(foreignPage(OFF, { ...HERE, "sec-fetch-mode": "cors" }), undefined);
  equal(foreignPage(OFF, { ...HERE, "sec-fetch-site": "none" }), undefined);
  equal(foreignPage(OFF, { ...HERE, "sec-fetch-site": ["same-origin"] }), undefined);
});

Deno.test("foreignPage() lets pass origins that are listed, and the listener's own", () => {
  equal(foreignPage(APP, { ...HERE, origin: ["https://app.example"] }), undefined);
  equal(foreignPage(APP, { ...HERE, origin: "app://notes" }), undefined);
  const cross = { ...HERE, origin: "https://app.example", "sec-fetch-site": "cross-site" };
  equal(foreignPage(APP, cross), undefined);
  for (
    const [origin, host] of [
      ["http://127.0.0.1:8080", "127.0.0.1:8080"],
      ["http://localhost:8080", "LOCALHOST:8080"],
      ["http://[::1]:8080", "[::1]:8080"],
      ["https://localhost", "localhost:443"],
    ]
  ) equal(foreignPage(OFF, { host, origin }), undefined, origin);
});

Deno.test("foreignPage() names every other one", () => {
  for (
    const origin of [
      "https://evil.example",
      "https://app.example.evil",
      "null",
      "",
      "file://",
      "app://127.0.0.1:8080",
      "http://localhost:3000",
      "http://127.0.0.1",
    ]
  ) equal(foreignPage(APP, { ...HERE, origin: [origin] }), origin);
  equal(
    foreignPage(APP, { ...HERE, origin: ["https://app.example", "https://evil.example"] }),
    "https://evil.example",
  );
  // A name of the attacker's that has come to mean this machine.
  equal(
    foreignPage(OFF, { host: "evil.example:8080", origin: "http://evil.example:8080" }),
    "http://evil.example:8080",
  );
  equal(foreignPage(OFF, { origin: "http://127.0.0.1:8080" }), "http://127.0.0.1:8080");
  for (const site of ["cross-site", "same-site", "what comes next"]) {
    equal(foreignPage(APP, { ...HERE, "sec-fetch-site": site }), "of another site", site);
  }
});
