import { equal, match, rejects } from "node:assert/strict";
import https from "node:https";
import tls from "node:tls";
import { Registry } from "prom-client";
import type { Role } from "./identity.ts";
import { startMetricsServer } from "./metrics_server.ts";
import { createLeaf, createRoot, type KeyPairPem, readCertificate } from "./pki.ts";

const HOUR_MS = 3_600_000;
const LOOPBACK = { host: "127.0.0.1", port: 0 };

function issue(authority: KeyPairPem, role: Role, validMs = HOUR_MS) {
  return createLeaf(authority, {
    identity: { cluster: "test", role, name: "a" },
    hosts: ["127.0.0.1"],
    validMs,
    now: Date.now(),
  });
}

/** The status that a scraper gets, or what went wrong. */
function scrape(port: number, options: https.RequestOptions): Promise<number | string> {
  return new Promise((resolve) => {
    const request = https.get({
      host: "127.0.0.1",
      port,
      path: "/metrics",
      agent: false,
      ...options,
    }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    request.on("error", () => resolve("refused"));
  });
}

Deno.test("the listener with certificates lets monitors and operators read, and nobody else", async (t) => {
  const folder = await Deno.makeTempDir();
  const root = await createRoot({ cluster: "test", validMs: HOUR_MS, now: Date.now() });
  const own = await issue(root, "agent");
  const files = {
    certificate_file: `${folder}/cert.pem`,
    key_file: `${folder}/key.pem`,
    ca_file: `${folder}/ca.pem`,
  };
  await Deno.writeTextFile(files.certificate_file, own.certificatePem);
  await Deno.writeTextFile(files.key_file, own.keyPem);
  await Deno.writeTextFile(files.ca_file, root.certificatePem);
  const struck = await issue(root, "monitor");
  const denied = new Set([readCertificate(struck.certificatePem).serial]);
  const server = await startMetricsServer({
    listen: LOOPBACK,
    secure: { listen: LOOPBACK, files },
    refuses: ({ serial }) => denied.has(serial) ? "ann struck it" : undefined,
    registry: new Registry(),
    notReady: () => undefined,
    routes: { "/debug/heap": (_request, response) => response.end("secrets") },
  });
  const port = server.secureAddress?.port ?? 0;
  const ca = root.certificatePem;
  const stranger = await createRoot({ cluster: "test", validMs: HOUR_MS, now: Date.now() });
  const cases: readonly (readonly [string, KeyPairPem | undefined, number | string])[] = [
    ["a monitor", await issue(root, "monitor"), 200],
    ["an operator", await issue(root, "operator"), 200],
    ["an agent", await issue(root, "agent"), 403],
    ["a router", await issue(root, "router"), 403],
    ["a control", await issue(root, "control"), 403],
    ["what is attached", await issue(root, "attached"), 403],
    ["a struck monitor", struck, 403],
    ["nobody", undefined, "refused"],
    ["an expired monitor", await issue(root, "monitor", -1_000), "refused"],
    ["a monitor of another authority", await issue(stranger, "monitor"), "refused"],
  ];
  const monitor = await issue(root, "monitor");
  const shown = { ca, cert: monitor.certificatePem, key: monitor.keyPem };
  try {
    for (const when of ["at first", "after a reload"]) {
      for (const [who, pair, wanted] of cases) {
        await t.step(`${who} ${when}: ${wanted}`, async () => {
          const shown = pair && { cert: pair.certificatePem, key: pair.keyPem };
          equal(await scrape(port, { ca, ...shown }), wanted);
        });
      }
      await t.step(`TLS 1.2 ${when}: refused`, async () => {
        equal(await scrape(port, { ...shown, maxVersion: "TLSv1.2" }), "refused");
      });
      const renewed = await issue(root, "agent");
      await Deno.writeTextFile(files.certificate_file, renewed.certificatePem);
      await Deno.writeTextFile(files.key_file, renewed.keyPem);
      await server.reload();
      await t.step("the certificate that is shown is the one in the file by now", async () => {
        equal(await servedSerial(port, shown), readCertificate(renewed.certificatePem).serial);
      });
    }
    await t.step("what only this machine may see stays on the plain listener", async () => {
      equal(await scrape(port, { ...shown, path: "/debug/heap" }), 404);
      const plain = await fetch(`http://127.0.0.1:${server.address.port}/debug/heap`);
      equal(await plain.text(), "secrets");
    });
    await t.step("a connection that stands ends once its certificate is struck", async () => {
      const kept = tls.connect({ host: "127.0.0.1", port, ...shown });
      const ended = new Promise<void>((resolve) => kept.on("close", () => resolve()));
      kept.on("error", () => {});
      const heard = new Promise<string>((resolve) => kept.once("data", (it) => resolve(`${it}`)));
      kept.write("GET /health HTTP/1.1\r\nhost: a\r\n\r\n");
      match(await heard, /^HTTP\/1.1 200 /);
      denied.add(readCertificate(monitor.certificatePem).serial);
      server.recheck();
      await ended;
      equal(await scrape(port, shown), 403);
    });
  } finally {
    await server.close();
    await Deno.remove(folder, { recursive: true });
  }
});

/** The certificate that the listener shows. */
function servedSerial(port: number, options: tls.ConnectionOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host: "127.0.0.1", port, ...options }, () => {
      resolve(socket.getPeerCertificate().serialNumber.toLowerCase());
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

Deno.test("startMetricsServer() starts both listeners or none", async () => {
  const missing = {
    certificate_file: "/nonexistent/cert.pem",
    key_file: "/nonexistent/key.pem",
    ca_file: "/nonexistent/ca.pem",
  };
  await rejects(
    startMetricsServer({
      listen: LOOPBACK,
      secure: { listen: LOOPBACK, files: missing },
      registry: new Registry(),
      notReady: () => undefined,
    }),
    /Cannot read \/nonexistent\//,
  );
});
