/** A real listener on loopback with a throw-away authority, for tests of what is served on it. */
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import type { Role } from "@heddle/common/identity";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { createLeaf, createRoot, type KeyPairPem } from "@heddle/common/pki";
import { connectRpc, type RpcConnection } from "@heddle/common/rpc_client";
import { type RpcServer, startRpcServer } from "@heddle/common/rpc_server";

const HOUR_MS = 3_600_000;
const CLUSTER = "test";

export const REALM = { cluster: CLUSTER, secured: true } as const;

export class Listener implements AsyncDisposable {
  readonly #authority: KeyPairPem;
  readonly #server: RpcServer;
  readonly #connections: RpcConnection[] = [];

  private constructor(authority: KeyPairPem, server: RpcServer) {
    this.#authority = authority;
    this.#server = server;
  }

  static async start(
    options: { roles: readonly Role[]; routes: (router: ConnectRouter) => void },
  ): Promise<Listener> {
    const authority = await createRoot({ cluster: CLUSTER, validMs: HOUR_MS, now: Date.now() });
    const listen = { host: "127.0.0.1", port: 0 };
    const tls = await issue(authority, { role: "control", name: "control" });
    return new Listener(authority, await startRpcServer({ listen, tls, ...options }));
  }

  get url(): string {
    return `https://127.0.0.1:${this.#server.address.port}`;
  }

  /** A connection with a certificate of its own; closed with the listener. */
  async connect(role: Role, name: string, cluster = CLUSTER): Promise<Transport> {
    return this.connectWith(await issue(this.#authority, { role, name, cluster }));
  }

  /** A connection without a certificate. */
  connectBare(): Transport {
    return this.connectWith({ cert: "", key: "", ca: this.#authority.certificatePem });
  }

  connectWith(tls: TlsMaterial): Transport {
    const connection = connectRpc({ url: this.url, tls });
    this.#connections.push(connection);
    return connection.transport;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#server.close(1_000);
  }
}

async function issue(
  authority: KeyPairPem,
  holder: { role: Role; name: string; cluster?: string },
): Promise<TlsMaterial> {
  const leaf = await createLeaf(authority, {
    identity: { cluster: CLUSTER, ...holder },
    hosts: ["127.0.0.1"],
    validMs: HOUR_MS,
    now: Date.now(),
  });
  return { cert: leaf.certificatePem, key: leaf.keyPem, ca: authority.certificatePem };
}
