/** The public listener: TLS and its certificate, IPv6, and who a request came from. */
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { deepEqual, equal, match, notEqual, rejects } from "node:assert/strict";
import { createRoot } from "@heddle/common/pki";
import { CHAT, endpointsAt, runRouter } from "./testing/running_router.ts";
import { CHAT_STREAM, HEALTHY, openStream, startEngine } from "./testing/scripted_engine.ts";

async function writeCertificate(folder: string): Promise<void> {
  const pair = await createRoot({ cluster: "test", validMs: 3_600_000, now: Date.now() });
  await Deno.writeTextFile(`${folder}/cert.pem`, pair.certificatePem);
  await Deno.writeTextFile(`${folder}/key.pem`, pair.keyPem, { mode: 0o600 });
}

async function withCertificate(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await writeCertificate(folder);
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const files = (folder: string) => ({
  certificate_file: `${folder}/cert.pem`,
  key_file: `${folder}/key.pem`,
});

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** The fingerprint that a new connection is shown. */
function fingerprint(port: number, options: tls.ConnectionOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
    socket.on("secureConnect", () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

/** Asks over TLS; `onHead` when the answer has begun. */
function ask(port: number, body: unknown, onHead: () => void = () => {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = https.request({
      port,
      host: "127.0.0.1",
      path: "/v1/chat/completions",
      method: "POST",
      rejectUnauthorized: false,
      agent: false,
      headers: { "content-type": "application/json" },
    }, async (response) => {
      onHead();
      let text = "";
      for await (const part of response) text += part;
      resolve(`${response.statusCode} ${text}`);
    });
    request.on("error", reject);
    request.end(JSON.stringify(body));
  });
}

Deno.test("the API over TLS, with a certificate that changes under an open stream", () =>
  withCertificate(async (folder) => {
    const goOn = Promise.withResolvers<void>();
    await using engine = await startEngine(async (call) => {
      openStream(call);
      call.response.write(CHAT_STREAM.slice(0, 3).join(""));
      await goOn.promise;
      call.response.end(CHAT_STREAM.slice(3).join(""));
    });
    await using router = await runRouter({
      endpoints: endpointsAt(engine.url),
      tls: files(folder),
    });
    const port = portOf(router.url);
    const before = await fingerprint(port);
    const begun = Promise.withResolvers<void>();
    const stream = ask(port, { ...CHAT, stream: true }, begun.resolve);
    await begun.promise;

    await writeCertificate(folder);
    await router.reload();
    const after = await fingerprint(port);
    notEqual(after, before);
    await Deno.writeTextFile(`${folder}/key.pem`, "no key");
    await router.reload();
    equal(await fingerprint(port), after, "a certificate that cannot be used changes nothing");
    await rejects(fingerprint(port, { maxVersion: "TLSv1.1" }), "old versions stay out");

    goOn.resolve();
    match(await stream, /^200 .*\[DONE\]/s);
    const plain = net.connect({ port, host: "127.0.0.1" });
    plain.resume().write("GET /health HTTP/1.1\r\nhost: x\r\n\r\n");
    await new Promise((resolve) => plain.on("close", resolve).on("error", resolve));
  }));

Deno.test("a certificate without its key is said at the start", () =>
  withCertificate(async (folder) => {
    const other = await createRoot({ cluster: "test", validMs: 3_600_000, now: Date.now() });
    await Deno.writeTextFile(`${folder}/key.pem`, other.keyPem);
    await rejects(
      runRouter({ endpoints: endpointsAt("http://127.0.0.1:1"), tls: files(folder) }),
      /Cannot use .*cert\.pem with .*key\.pem: the key is not the certificate's/,
    );
  }));

Deno.test("the API on IPv6, with an engine on IPv6", async () => {
  await using engine = await startEngine(HEALTHY, { host: "::1" });
  await using router = await runRouter({
    listen: "[::1]:0",
    endpoints: endpointsAt(engine.url),
  });
  match(router.url, /^http:\/\/\[::1\]:\d+$/);
  const response = await router.post("/v1/chat/completions", CHAT);
  equal(response.status, 200);
  await response.body?.cancel();
  match(engine.calls[0]?.headers.host ?? "", /^\[::1\]:\d+$/);
  equal((await router.record(1)).clientAddress, "::1");
});

Deno.test("a request's address is the peer's, unless a proxy of ours says otherwise", async () => {
  await using engine = await startEngine(HEALTHY);
  const config = { endpoints: endpointsAt(engine.url) };
  await using open = await runRouter(config);
  await using behind = await runRouter({ ...config, trusted_proxies: ["127.0.0.0/8"] });
  const headers = { "x-forwarded-for": "1.1.1.1, 203.0.113.5" };
  for (const router of [open, behind]) {
    const response = await router.post("/v1/chat/completions", CHAT, { headers });
    await response.body?.cancel();
  }
  deepEqual(
    [(await open.record(1)).clientAddress, (await behind.record(1)).clientAddress],
    ["127.0.0.1", "203.0.113.5"],
  );
  equal(engine.calls[0]?.headers["x-forwarded-for"], undefined);
});

/** Sends `body` where there is nothing, and then asks for its health on the same connection. */
function statusesAfter(port: number, body: Uint8Array): Promise<string[]> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" });
    let text = "";
    socket.on("data", (part) => text += part).on("error", () => {});
    socket.on("close", () => resolve(text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []));
    socket.write(`POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`);
    socket.write(body);
    socket.write("GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  });
}

Deno.test("a body that nobody wants does not stop its connection, and is not read for ever", async () => {
  await using router = await runRouter({ endpoints: endpointsAt("http://127.0.0.1:1") });
  const port = portOf(router.url);
  deepEqual(await statusesAfter(port, new Uint8Array(5_000_000)), ["404", "200"]);
  const tooMuch = await statusesAfter(port, new Uint8Array(40_000_000));
  equal(tooMuch.includes("200"), false);
});

Deno.test("without keys a web page gets nothing done blindly, unless its origin is listed", async () => {
  await using engine = await startEngine(HEALTHY);
  const config = { endpoints: endpointsAt(engine.url), cors: { origins: ["https://app.example"] } };
  await using router = await runRouter(config);
  // What a page can have any browser send without a preflight.
  const blindly = async (path: string, headers: Record<string, string>, body: BodyInit) => {
    const response = await fetch(router.url + path, { method: "POST", headers, body });
    return `${response.status} ${await response.text()}`;
  };
  const text = { "content-type": "text/plain" };
  const chat = JSON.stringify(CHAT);
  const form = new FormData();
  form.append("model", "m");
  form.append("file", new Blob(["sound"]), "a.wav");
  for (
    const refused of [
      await blindly("/v1/chat/completions", { ...text, origin: "https://evil.example" }, chat),
      await blindly("/v1/chat/completions", { ...text, origin: "null" }, chat),
      await blindly("/v1/messages", { ...text, "sec-fetch-site": "cross-site" }, chat),
      await blindly("/v1/audio/transcriptions", { origin: "https://evil.example" }, form),
    ]
  ) match(refused, /^403 .*cors\.origins/);
  equal(engine.calls.length, 0);
  equal((await router.record(1)).outcome, "origin_not_allowed");
  for (const path of ["/v1/models", "/v1/models/m", "/v1/keys/self"]) {
    const response = await fetch(router.url + path, {
      headers: { origin: "https://evil.example" },
    });
    equal(response.status, 403, path);
    await response.body?.cancel();
  }
  const health = await fetch(`${router.url}/health`, {
    headers: { "sec-fetch-site": "cross-site" },
  });
  equal(await health.text(), "ok\n");

  const own = new URL(router.url).origin;
  for (
    const headers of [{ ...text, origin: "https://app.example" }, { ...text, origin: own }, text]
  ) {
    match(await blindly("/v1/chat/completions", headers, chat), /^200 /);
  }
});
