import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { once } from "node:events";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { AgentService } from "@heddle/proto/gen/agent";
import type { TlsMaterial } from "../mtls_files.ts";
import { createLeaf, createRoot, type KeyPairPem } from "../pki.ts";
import { connectRpc } from "../rpc_client.ts";

const now = Date.now();
const HOUR_MS = 3_600_000;

/**
 * A listener that judges certificates, on a thread of its own: only then does its verdict reach a
 * busy client at any moment, as over a network.
 */
const LISTENER = `
  import http2 from "node:http2";
  self.onmessage = ({ data }) => {
    const server = http2.createSecureServer({
      ...data, minVersion: "TLSv1.3", requestCert: true, rejectUnauthorized: true });
    server.on("tlsClientError", () => {});
    server.on("sessionError", () => {});
    server.listen(0, "127.0.0.1", () => self.postMessage(server.address().port));
  };`;

async function withListener(
  use: (port: number, root: KeyPairPem) => Promise<void>,
): Promise<void> {
  const root = await createRoot({ cluster: "test", validMs: HOUR_MS, now });
  const worker = new Worker(`data:text/javascript,${encodeURIComponent(LISTENER)}`, {
    type: "module",
  });
  try {
    const listening = once(worker, "message");
    worker.postMessage(await material(root, root, "control"));
    const [event] = await listening;
    await use(Number(event.data), root);
  } finally {
    worker.terminate();
  }
}

async function material(
  signer: KeyPairPem,
  trusted: KeyPairPem,
  role: "control" | "agent",
): Promise<TlsMaterial> {
  const { certificatePem, keyPem } = await createLeaf(signer, {
    identity: { cluster: "test", role, name: "a" },
    hosts: ["127.0.0.1"],
    validMs: HOUR_MS,
    now,
  });
  return { cert: certificatePem, key: keyPem, ca: trusted.certificatePem };
}

/** Opens a stream and says what became of it. */
async function stream(port: number, tls: TlsMaterial): Promise<ConnectError> {
  const connection = connectRpc({ url: `https://127.0.0.1:${port}`, tls });
  const end = new AbortController();
  async function* requests() {
    yield { message: { case: "register" as const, value: { node: "x".repeat(20_000) } } };
    await once(end.signal, "abort");
  }
  try {
    const client = createClient(AgentService, connection.transport);
    for await (const _ of client.connect(requests(), { timeoutMs: 10_000 })) break;
    throw new Error("it was let in");
  } catch (error) {
    return ConnectError.from(error);
  } finally {
    end.abort();
    connection.close();
  }
}

Deno.test("a refused certificate is told as that, however often and whenever it arrives", async () => {
  await withListener(async (port, root) => {
    const foreign = await createRoot({ cluster: "test", validMs: HOUR_MS, now });
    const strangers: readonly TlsMaterial[] = [
      { cert: "", key: "", ca: root.certificatePem },
      await material(foreign, root, "agent"),
    ];
    const seen = new Map<string, number>();
    const knock = async (stranger: TlsMaterial) => {
      for (let time = 0; time < 25; time++) {
        const { code, rawMessage } = await stream(port, stranger);
        const words = /^the certificate was refused/.test(rawMessage) ? "refused" : rawMessage;
        seen.set(`${Code[code]} ${words}`, (seen.get(`${Code[code]} ${words}`) ?? 0) + 1);
      }
    };
    await Promise.all([...strangers, ...strangers, ...strangers].map(knock));
    deepEqual([...seen], [["Unauthenticated refused", 150]]);
  });
});

Deno.test("what is not there, or is not control, is no refused certificate", async () => {
  const root = await createRoot({ cluster: "test", validMs: HOUR_MS, now });
  const own = await material(root, root, "agent");
  const gone = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = gone.addr;
  gone.close();
  const nobody = await stream(port, own);
  equal(nobody.code, Code.Unavailable);
  ok(!nobody.rawMessage.includes("certificate was refused"), nobody.rawMessage);
  await withListener(async (open, trusted) => {
    const untrusting = await stream(open, { ...await material(trusted, root, "agent") });
    ok(!untrusting.rawMessage.includes("certificate was refused"), untrusting.rawMessage);
    match(untrusting.rawMessage, /certificate/i);
  });
});

Deno.test("a connection that was closed here calls nobody any more", async () => {
  const connection = connectRpc({ url: "http://127.0.0.1:9", tls: undefined });
  connection.close();
  const client = createClient(AgentService, connection.transport);
  await rejects(
    async () => {
      for await (const _ of client.connect((async function* () {})())) break;
    },
    (error) => ConnectError.from(error).code === Code.Canceled,
  );
});
