import { equal, match, ok, rejects, throws } from "node:assert/strict";
import net from "node:net";
import tls from "node:tls";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { AdminService } from "@heddle/proto/gen/admin";
import { HeddleError } from "@heddle/proto/error";
import type { Role } from "./identity.ts";
import type { TlsMaterial } from "./mtls_files.ts";
import { createLeaf, createRoot, type KeyPairPem, readCertificate } from "./pki.ts";
import { checkControlUrl, connectRpc } from "./rpc_client.ts";
import { PEER, type RpcServer, type RpcServerOptions, startRpcServer } from "./rpc_server.ts";

const now = Date.now();
const HOUR_MS = 3_600_000;

function root() {
  return createRoot({ cluster: "test", validMs: 24 * HOUR_MS, now });
}

async function leaf(
  authority: KeyPairPem,
  role: Role,
  options: { validMs?: number; hosts?: string[] } = {},
): Promise<TlsMaterial> {
  const pair = await createLeaf(authority, {
    identity: { cluster: "test", role, name: "a" },
    hosts: options.hosts ?? ["127.0.0.1"],
    validMs: options.validMs ?? HOUR_MS,
    now,
  });
  return { cert: pair.certificatePem, key: pair.keyPem, ca: authority.certificatePem };
}

function serve(
  tls: TlsMaterial,
  roles?: Role[],
  more: Partial<RpcServerOptions> = {},
): Promise<RpcServer> {
  return startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls,
    ...(roles === undefined ? {} : { roles }),
    ...more,
    routes: (router) =>
      router.service(AdminService, {
        getVersion: (_request, context) => {
          const { identity } = context.values.get(PEER);
          return { version: `${identity?.role}/${identity?.name}` };
        },
      }),
  });
}

/** Moves what this process takes for now. */
class FakeTime {
  readonly #real = Date.now;

  set now(ms: number) {
    Date.now = () => ms;
  }

  restore(): void {
    Date.now = this.#real;
  }
}

async function version(server: RpcServer, tls: TlsMaterial): Promise<string> {
  const connection = connectRpc({ url: `https://127.0.0.1:${server.address.port}`, tls });
  try {
    const client = createClient(AdminService, connection.transport);
    return (await client.getVersion({}, { timeoutMs: 5_000 })).version;
  } finally {
    connection.close();
  }
}

Deno.test("startRpcServer() tells handlers who the peer is", async () => {
  const authority = await root();
  const server = await serve(await leaf(authority, "control"));
  try {
    equal(await version(server, await leaf(authority, "agent")), "agent/a");
  } finally {
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() refuses another role, also after a reload", async () => {
  const authority = await root();
  const server = await serve(await leaf(authority, "control"), ["router"]);
  try {
    for (const step of ["before", "after a reload"]) {
      await rejects(
        version(server, await leaf(authority, "agent")),
        (error) => ConnectError.from(error).code === Code.PermissionDenied,
        step,
      );
      equal(await version(server, await leaf(authority, "router")), "router/a");
      server.reload(await leaf(authority, "control"));
    }
  } finally {
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() refuses strangers: another authority, expired, no certificate", async () => {
  const authority = await root();
  const server = await serve(await leaf(authority, "control"));
  const trust = authority.certificatePem;
  const strangers = [
    { ...await leaf(await root(), "agent"), ca: trust },
    await leaf(authority, "agent", { validMs: -60_000 }),
    { cert: "", key: "", ca: trust },
  ];
  try {
    for (const step of ["before", "after a reload"]) {
      for (const [index, stranger] of strangers.entries()) {
        await rejects(version(server, stranger), `${index} ${step}`);
      }
      server.reload(await leaf(authority, "control"));
    }
  } finally {
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() ends connections whose certificate is refused later, and lets them not in again", async () => {
  const authority = await root();
  const struck = new Set<string>();
  const server = await serve(await leaf(authority, "control"), undefined, {
    refuses: ({ serial }) => struck.has(serial) ? "it was struck" : undefined,
  });
  const peer = await leaf(authority, "agent");
  const open = connectRpc({ url: `https://127.0.0.1:${server.address.port}`, tls: peer });
  try {
    const client = createClient(AdminService, open.transport);
    equal((await client.getVersion({})).version, "agent/a");
    server.recheck();
    equal((await client.getVersion({})).version, "agent/a");
    struck.add(readCertificate(peer.cert).serial);
    server.recheck();
    const refused = (error: unknown) => ConnectError.from(error).code === Code.Unauthenticated;
    await rejects(version(server, peer), refused);
    server.reload(await leaf(authority, "control"));
    await rejects(version(server, peer), refused, "after a reload");
    await rejects(client.getVersion({}, { timeoutMs: 5_000 }), refused, "on the connection it had");
    equal(await version(server, await leaf(authority, "agent")), "agent/a");
  } finally {
    open.close();
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() outlives peers that are refused and leave at that very moment", async () => {
  const authority = await root();
  let struck = false;
  const server = await serve(await leaf(authority, "control"), undefined, {
    refuses: () => struck ? "it was struck" : undefined,
  });
  const own = await leaf(authority, "agent");
  const peers = Array.from({ length: 8 }, () => {
    const url = `https://127.0.0.1:${server.address.port}`;
    const connection = connectRpc({ url, tls: own });
    return { connection, client: createClient(AdminService, connection.transport) };
  });
  try {
    await Promise.all(peers.map(({ client }) => client.getVersion({})));
    struck = true;
    const asked = peers.map(({ client }) => rejects(client.getVersion({})));
    server.recheck();
    for (const { connection } of peers) connection.close();
    await Promise.all(asked);
    // Longer than what was written last has to get to a peer.
    await new Promise((later) => setTimeout(later, 500));
    struck = false;
    equal(await version(server, own), "agent/a");
  } finally {
    await server.close(0);
  }
});

Deno.test("startRpcServer() ends a connection when its certificate expires", async () => {
  const authority = await root();
  const server = await serve(await leaf(authority, "control"));
  const time = new FakeTime();
  const peer = await leaf(authority, "agent");
  const open = connectRpc({ url: `https://127.0.0.1:${server.address.port}`, tls: peer });
  try {
    const client = createClient(AdminService, open.transport);
    equal((await client.getVersion({})).version, "agent/a");
    time.now = now + 2 * HOUR_MS;
    server.recheck();
    await rejects(client.getVersion({}, { timeoutMs: 5_000 }));
  } finally {
    time.restore();
    open.close();
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() with an optional certificate lets in who shows none, and no stranger", async () => {
  const authority = await root();
  const server = await serve(await leaf(authority, "control"), undefined, {
    certificateOptional: true,
  });
  const trust = authority.certificatePem;
  try {
    for (const step of ["before", "after a reload"]) {
      equal(await version(server, await leaf(authority, "operator")), "operator/a");
      equal(await version(server, { cert: "", key: "", ca: trust }), "undefined/undefined");
      await rejects(version(server, { ...await leaf(await root(), "operator"), ca: trust }), step);
      await rejects(version(server, await leaf(authority, "operator", { validMs: -60_000 })), step);
      server.reload(await leaf(authority, "control"));
    }
  } finally {
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() gives a streaming handler's error its code and words", async () => {
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    routes: (router) =>
      router.service(AdminService, {
        async *readLogs() {
          yield { lines: [] };
          throw new HeddleError("exhausted", "Stopped reading logs: too slow");
        },
      }),
  });
  const connection = connectRpc({
    url: `http://127.0.0.1:${server.address.port}`,
    tls: undefined,
  });
  try {
    const client = createClient(AdminService, connection.transport);
    let received = 0;
    await rejects(async () => {
      for await (const _ of client.readLogs({})) received++;
    }, (error) => {
      const { code, rawMessage } = ConnectError.from(error);
      return code === Code.ResourceExhausted && rawMessage === "Stopped reading logs: too slow";
    });
    equal(received, 1);
  } finally {
    connection.close();
    await server.close(1_000);
  }
});

Deno.test("startRpcServer() refuses TLS 1.2, also after a reload", async () => {
  const authority = await root();
  const server = await serve(await leaf(authority, "control"));
  const peer = await leaf(authority, "agent");
  const handshake = () =>
    new Promise<string>((resolve) => {
      const socket = tls.connect({
        host: "127.0.0.1",
        port: server.address.port,
        ...peer,
        maxVersion: "TLSv1.2",
        ALPNProtocols: ["h2"],
      });
      socket.on("secureConnect", () => {
        resolve(`connected with ${socket.getProtocol()}`);
        socket.destroy();
      });
      socket.on("error", () => resolve("refused"));
    });
  try {
    equal(await handshake(), "refused");
    server.reload(await leaf(authority, "control"));
    equal(await handshake(), "refused");
  } finally {
    await server.close(1_000);
  }
});

Deno.test("connectRpc() refuses a server that is not control, or not this host", async () => {
  const authority = await root();
  for (
    const impostor of [
      await leaf(authority, "router"),
      await leaf(authority, "control", { hosts: ["192.0.2.1"] }),
    ]
  ) {
    const server = await serve(impostor);
    try {
      await rejects(version(server, await leaf(authority, "agent")));
    } finally {
      await server.close(1_000);
    }
  }
});

Deno.test("a listener closes within its grace, whoever stays connected and says nothing", async () => {
  const authority = await root();
  const material = await leaf(authority, "control");
  const server = await serve(material);
  const { port } = server.address;
  const credentials = await leaf(authority, "agent");
  const silent = net.connect({ host: "127.0.0.1", port });
  const mute = tls.connect({
    ...credentials,
    host: "127.0.0.1",
    port,
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.3",
  });
  const ended = [silent, mute].map((socket) => {
    socket.on("error", () => {}).resume();
    return new Promise((resolve) => socket.on("close", resolve));
  });
  await Promise.all([
    new Promise((resolve) => silent.on("connect", resolve)),
    new Promise((resolve) => mute.on("secureConnect", resolve)),
  ]);
  await server.close(50);
  await Promise.all(ended);
});

Deno.test("startRpcServer() serves plaintext on loopback only", async () => {
  await rejects(
    startRpcServer({ listen: { host: "0.0.0.0", port: 0 }, tls: undefined, routes: () => {} }),
    /without TLS only loopback/,
  );
});

Deno.test("startRpcServer() says which address is taken", async () => {
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    routes: () => {},
  });
  try {
    await rejects(
      startRpcServer({ listen: server.address, tls: undefined, routes: () => {} }),
      new RegExp(`Cannot listen on 127.0.0.1:${server.address.port}`),
    );
  } finally {
    await server.close(1_000);
  }
});

Deno.test("checkControlUrl() refuses a scheme that contradicts the TLS settings", () => {
  throws(() => checkControlUrl("http://127.0.0.1:1", true), /must begin with https/);
  throws(() => checkControlUrl("https://127.0.0.1:1", false), /needs the tls section/);
  throws(() => checkControlUrl("http://10.0.0.1:1", false), /only loopback/);
  throws(() => checkControlUrl("ftp://x:1", false), /want https/);
  match(checkControlUrl("http://[::1]:7443", false).origin, /\[::1\]:7443/);
});

Deno.test("connectRpc() gives up on a peer that accepts and says nothing, in bounded time", async () => {
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const material = await leaf(await root(), "operator");
  const connection = connectRpc({
    url: `https://127.0.0.1:${silent.addr.port}`,
    tls: material,
    connectMs: 200,
  });
  const begunAt = performance.now();
  const accepted = silent.accept();
  await rejects(createClient(AdminService, connection.transport).getVersion({}));
  ok(performance.now() - begunAt < 5_000);
  (await accepted).close();
  connection.close();
  silent.close();
});
