/**
 * What one end of a connection must not do to the other. Clients that leave at random moments are not
 * tried here: they destroy sessions, and what that sends may end this very process (see
 * rpc/watched_session.ts).
 */
import http2 from "node:http2";
import { deepEqual, equal } from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { AdminService } from "@heddle/proto/gen/admin";
import { shownCertificate } from "./identity.ts";
import { connectRpc } from "./rpc_client.ts";
import { startRpcServer } from "./rpc_server.ts";

Deno.test("shownCertificate() knows no certificate where there is no connection any more", () => {
  equal(shownCertificate(null), undefined);
  equal(shownCertificate(undefined), undefined);
  equal(shownCertificate({}), undefined);
});

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
