/** A node is who its certificate says, and nobody without one gets in. */
import { equal, match, rejects } from "node:assert/strict";
import { join } from "node:path";
import tls from "node:tls";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { readTlsFiles } from "@heddle/common/mtls_files";
import { connectRpc } from "@heddle/common/rpc_client";
import {
  AgentService,
  type ConnectRequest,
  ConnectRequestSchema,
  type ConnectResponse,
} from "@heddle/proto/gen/agent";
import { issueCertificate, openAuthority } from "../../tools/up/layout/certificates.ts";
import { Heddle, reserve, ROOT, runCommand } from "./heddle.ts";

/** What a client begins with, and an empty SETTINGS frame; RFC 9113, 3.4. */
const HTTP2_PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

Deno.test("control refuses whoever cannot prove to be the node it claims to be", async (t) => {
  await using place = await reserve();
  await using heddle = await Heddle.start(place);
  const [victim] = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
  const own = await openAuthority(join(place.state, "ca"));
  const foreign = await openAuthority(join(place.state, "foreign-ca"));
  const show = async (
    authority: typeof own,
    holder: { role: "agent" | "router"; name: string },
  ) => {
    const folder = join(place.state, "impostors", crypto.randomUUID());
    const files = await issueCertificate(authority, { ...holder, folder });
    // It trusts the real control; only what it shows is wrong.
    return { ...await readTlsFiles(files), ca: own.certificatePem };
  };
  const registers = (material: { cert: string; key: string; ca: string }) =>
    register(`https://127.0.0.1:${place.port + 2}`, material, victim.name);

  await t.step("another node's certificate", async () => {
    const material = await show(own, { role: "agent", name: "somebody-else" });
    await rejects(registers(material), (error) => {
      const { code, rawMessage } = ConnectError.from(error);
      equal(code, Code.PermissionDenied);
      match(rawMessage, /somebody-else/);
      return true;
    });
  });

  await t.step("a router's certificate", async () => {
    const material = await show(own, { role: "router", name: victim.name });
    await rejects(registers(material), (error) => {
      equal(ConnectError.from(error).code, Code.PermissionDenied);
      return true;
    });
  });

  await t.step("a certificate of another authority, and none at all", async () => {
    const port = place.port + 2;
    equal(await knock(port, await show(foreign, { role: "agent", name: victim.name })), "refused");
    equal(await knock(port, { cert: "", key: "", ca: own.certificatePem }), "refused");
    equal(await knock(port, await show(own, { role: "agent", name: victim.name })), "let in");
  });

  await t.step("the real certificate is let in by the same call", async () => {
    const material = await show(own, { role: "agent", name: victim.name });
    equal((await registers(material))?.message.case, "registered");
  });

  await t.step("an agent says itself that its certificate is another's", async () => {
    const folder = join(heddle.state, "agents", victim.name);
    const result = await runCommand(join(ROOT, "bin/heddle-agent"), [
      "--config",
      join(folder, "agent.yaml"),
      "--node",
      "other-name",
    ], { HEDDLE_DENO: Deno.execPath(), HEDDLE_STATE: folder });
    equal(result.code, 2);
    match(result.stderr, /other-name.*certificate/);
  });
});

/**
 * Whether a listener for HTTP/2 lets a connection in. With TLS 1.3 the client's side of the handshake
 * ends before the server has judged its certificate: only an answer tells that it was accepted.
 */
function knock(
  port: number,
  material: { cert: string; key: string; ca: string },
): Promise<"let in" | "refused"> {
  return new Promise((resolve) => {
    const socket = tls.connect({
      host: "127.0.0.1",
      port,
      ...material,
      minVersion: "TLSv1.3",
      ALPNProtocols: ["h2"],
    });
    socket.on("error", () => resolve("refused"));
    socket.on("close", () => resolve("refused"));
    socket.on("data", () => {
      resolve("let in");
      socket.destroy();
    });
    socket.on("secureConnect", () => socket.write(HTTP2_PREFACE));
  });
}

/** Opens a stream as `node` and returns the first answer. */
async function register(
  url: string,
  material: { cert: string; key: string; ca: string },
  node: string,
): Promise<ConnectResponse | undefined> {
  const connection = connectRpc({ url, tls: material });
  const end = new AbortController();
  async function* requests(): AsyncGenerator<ConnectRequest> {
    yield create(ConnectRequestSchema, {
      message: { case: "register", value: { node, address: "127.0.0.1", inventory: {} } },
    });
    await new Promise<void>((done) => end.signal.addEventListener("abort", () => done()));
  }
  try {
    const client = createClient(AgentService, connection.transport);
    for await (const answer of client.connect(requests(), { timeoutMs: 10_000 })) return answer;
    return undefined;
  } finally {
    end.abort();
    connection.close();
  }
}
