/** What anyone who reaches a listener can do to it: it must go on serving the others. */
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { deepEqual, equal } from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { AdminService } from "@heddle/proto/gen/admin";
import type { Role } from "./identity.ts";
import { shownCertificate } from "./identity.ts";
import { createLeaf, createRoot } from "./pki.ts";
import { connectRpc } from "./rpc_client.ts";
import { startRpcServer } from "./rpc_server.ts";

const ROUNDS = 60;
const CONNECTION_MS_MAX = 2_000;

Deno.test("shownCertificate() knows no certificate where there is no connection any more", () => {
  equal(shownCertificate(null), undefined);
  equal(shownCertificate(undefined), undefined);
  equal(shownCertificate({}), undefined);
});

Deno.test("a listener outlives clients that leave in the middle of everything", async () => {
  const now = Date.now();
  const root = await createRoot({ cluster: "test", validMs: 3_600_000, now });
  const material = async (role: Role) => {
    const identity = { cluster: "test", role, name: "a" };
    const pair = await createLeaf(root, { identity, hosts: ["127.0.0.1"], validMs: 600_000, now });
    return { cert: pair.certificatePem, key: pair.keyPem, ca: root.certificatePem };
  };
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: await material("control"),
    roles: ["operator"],
    routes: (router) => router.service(AdminService, { getVersion: () => ({ version: "here" }) }),
  });
  const operator = await material("operator");
  const { port } = server.address;
  const host = "127.0.0.1";
  const ways = [
    () => ended(net.connect(port, host), (socket) => socket.write("GET / HTTP/1.1\r\n\r\n")),
    () => ended(net.connect(port, host), (socket) => socket.write(new Uint8Array([22, 3, 1, 2]))),
    () => ended(tls.connect({ port, host, rejectUnauthorized: false, ALPNProtocols: ["h2"] })),
    () => asksAndLeaves(port, operator),
  ];
  try {
    for (let round = 0; round < ROUNDS; round++) await Promise.all(ways.map((way) => way()));
    const connection = connectRpc({ url: `https://${host}:${port}`, tls: operator });
    const client = createClient(AdminService, connection.transport);
    equal((await client.getVersion({}, { timeoutMs: 5_000 })).version, "here");
    connection.close();
  } finally {
    await server.close(1_000);
  }
});

/** Says something, leaves within a moment, and resolves when the connection has gone. */
function ended<S extends net.Socket>(
  socket: S,
  say: (socket: S) => void = () => {},
): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), Math.random() * 20);
    socket.on("connect", () => say(socket));
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** A request whose client is gone by the time that the server looks at who it is. */
function asksAndLeaves(
  port: number,
  { cert, key, ca }: { cert: string; key: string; ca: string },
): Promise<void> {
  return new Promise((resolve) => {
    const session = http2.connect(`https://127.0.0.1:${port}`, {
      cert,
      key,
      ca,
      rejectUnauthorized: false,
      minVersion: "TLSv1.3",
    });
    const leave = () => session.destroy();
    let timer = setTimeout(leave, CONNECTION_MS_MAX);
    session.on("error", () => {});
    session.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
    session.on("connect", () => {
      clearTimeout(timer);
      const request = session.request({
        ":method": "POST",
        ":path": "/heddle.v1.AdminService/GetVersion",
        "content-type": "application/json",
      });
      request.on("error", () => {});
      request.end("{}");
      timer = setTimeout(leave, Math.random() * 4);
    });
  });
}

Deno.test("neither end of a connection says GOAWAY, which Deno may die of", async () => {
  const said: string[] = [];
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    routes: (router) => router.service(AdminService, { getVersion: () => ({ version: "here" }) }),
  });
  const { port } = server.address;
  const peer = http2.connect(`http://127.0.0.1:${port}`);
  peer.on("goaway", () => said.push("listener"));
  const gone = new Promise((resolve) => peer.on("close", resolve));
  await new Promise((resolve) => peer.on("connect", resolve));
  await server.close(1_000);
  await gone;

  const listener = http2.createServer();
  const ended = Promise.withResolvers<void>();
  listener.on("session", (session) => {
    session.on("goaway", () => said.push("client"));
    session.on("error", () => {});
    session.on("stream", (stream) => stream.on("error", () => {}));
    session.on("close", () => ended.resolve());
    session.socket.on("close", () => ended.resolve());
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const bound = listener.address();
  const other = typeof bound === "object" && bound !== null ? bound.port : 0;
  const connection = connectRpc({ url: `http://127.0.0.1:${other}`, tls: undefined });
  const client = createClient(AdminService, connection.transport);
  const asked = client.getVersion({}).then(() => "answered", () => "ended");
  await new Promise((resolve) => listener.once("stream", resolve));
  connection.close();
  equal(await asked, "ended");
  await ended.promise;
  listener.close();
  deepEqual(said, []);
});
