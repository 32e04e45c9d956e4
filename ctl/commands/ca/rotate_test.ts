/** A cluster's authority is replaced, step by step, and nobody is without one in between. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import tls from "node:tls";
import { readCertificate } from "@heddle/common/pki";
import { Machine, withFolder } from "./machine_fake.ts";

const AGENT = ["sign", "--role", "agent", "--name", "gpu-1", "--host", "127.0.0.1"];

const read = (machine: Machine, name: string) => Deno.readTextFile(join(machine.authority, name));

/** The fleet as it is after a run of Ansible: whom everybody trusts, and gpu-1's certificate. */
async function visit(machine: Machine, request: string, before: string) {
  const chain = await machine.succeed(AGENT, request + before);
  return { trust: await read(machine, "trust.pem"), chain };
}

Deno.test("every step leaves a fleet that trusts each other, and can be repeated", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const request = await machine.succeed(["request"]);
    const key = await Deno.readTextFile(join(machine.certificates, "key.pem"));
    const first = await visit(machine, request, "");
    const states = [first];
    match((await machine.run(["rotate", "switch"])).err, /no rotation was started/);
    match(await machine.succeed(["rotate", "finish"]), /No rotation is under way/);

    for (const _ of [1, 2]) match(await machine.succeed(["rotate", "start"]), /rotate switch/);
    match(await machine.succeed(["status"]), /^root\tprod\t[^]*^next root\tprod\t/m);
    states.push(await visit(machine, request, first.chain));
    equal(states.at(-1)?.chain, first.chain, "the old one still signs");
    match((await machine.run(["rotate", "finish"])).err, /the old authority still signs/);

    for (const _ of [1, 2]) match(await machine.succeed(["rotate", "switch"]), /rotate finish/);
    match((await machine.run(["rotate", "start"])).err, /waits for/);
    const refused = await machine.run(["rotate", "finish"]);
    ok(refused.failed);
    match(refused.err, /newest certificate of agent\/gpu-1 is of the old authority/);
    states.push(await visit(machine, request, first.chain));
    notEqual(states.at(-1)?.chain, first.chain, "the new one signs");

    for (const _ of [1, 2]) await machine.succeed(["rotate", "finish"]);
    equal((await machine.succeed(["status"])).includes("next"), false);
    states.push(await visit(machine, request, states.at(-1)?.chain ?? ""));
    equal(states.at(-1)?.trust.trim(), (await read(machine, "root.pem")).trim());
    deepEqual(
      (await Array.fromAsync(Deno.readDir(machine.authority), ({ name }) => name))
        .filter((name) => ["next", "old"].includes(name)),
      [],
    );
    // A machine may be a run behind its peers, in either direction.
    for (const [index, { trust, chain }] of states.entries()) {
      for (const other of states.slice(Math.max(0, index - 1), index + 2)) {
        equal(await handshake({ trust, chain, key }, other), "ok", `${index}`);
        await opensslVerifies(folder, other.chain, trust);
      }
    }
    const [one, last] = [states[0], states.at(-1)];
    if (one === undefined || last === undefined) throw new Error("no states");
    notEqual(await handshake({ ...last, key }, one), "ok", "the old one counts no more");
  });
});

Deno.test("finish lets go of who has left the fleet when told, and a half-done switch is taken up", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    await machine.succeed(AGENT, await machine.succeed(["request"]));
    await machine.succeed(["rotate", "start"]);
    const next = readCertificate(await read(machine, "next/issuing.pem")).serial;
    // As a crash in the middle of it leaves things.
    await Deno.mkdir(join(machine.authority, "old"));
    await Deno.copyFile(
      join(machine.authority, "root.pem"),
      join(machine.authority, "old/root.pem"),
    );
    await Deno.rename(
      join(machine.authority, "next/issuing-key.pem"),
      join(machine.authority, "issuing-key.pem"),
    );
    await machine.succeed(["rotate", "switch"]);
    equal(readCertificate(await read(machine, "issuing.pem")).serial, next);
    ok((await machine.run(["rotate", "finish", "--except", "agent/gpu-2"])).failed);
    await machine.succeed(["rotate", "finish", "--except", "agent/gpu-1"]);
    match(await machine.succeed(["rotate", "finish"]), /No rotation/);
  });
});

Deno.test("sign keeps what control has renewed", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const fleet = new X509Certificate(await read(machine, "fleet.pem"));
    equal(fleet.subject, "CN=Heddle fleet authority of prod");
    equal(fleet.issuer, "CN=Heddle root of prod");
  });
});

Deno.test("token shows a secret once, and what control keeps does not hold it", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    const made = JSON.parse(
      await machine.succeed(["token", "--name", "ann", "--role", "admin", "--json"]),
    );
    match(made.token, /^sk-heddle-[\w-]{43}$/);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(made.token));
    equal(made.line, `ann admin ${new Uint8Array(digest).toHex()}`);
    ok((await machine.run(["token", "--name", "a b", "--role", "admin"])).failed);
    ok((await machine.run(["token", "--name", "ann", "--role", "king"])).failed);
  });
});

interface State {
  readonly trust: string;
  readonly chain: string;
}

/** Mutual TLS between two that are each in a state of their own. */
async function handshake(server: State & { key: string }, client: State): Promise<string> {
  const listener = tls.createServer({
    cert: server.chain,
    key: server.key,
    ca: server.trust,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: "TLSv1.3",
  }, (socket) => socket.end("ok"));
  listener.on("tlsClientError", () => {});
  const { promise, resolve } = Promise.withResolvers<string>();
  listener.listen(0, "127.0.0.1", () => {
    const bound = listener.address();
    const port = typeof bound === "object" ? bound?.port ?? 0 : 0;
    const socket = tls.connect({
      host: "127.0.0.1",
      port,
      cert: client.chain,
      key: server.key,
      ca: client.trust,
      minVersion: "TLSv1.3",
    });
    let said = "";
    socket.on("data", (bytes) => said += bytes);
    socket.on("error", (error) => resolve(error.message));
    socket.on("close", () => resolve(said || "closed"));
  });
  try {
    return await promise;
  } finally {
    await new Promise((closed) => listener.close(closed));
  }
}

async function opensslVerifies(folder: string, chain: string, trust: string): Promise<void> {
  const [cert, ca] = [join(folder, "v-cert.pem"), join(folder, "v-ca.pem")];
  await Deno.writeTextFile(cert, chain);
  await Deno.writeTextFile(ca, trust);
  try {
    const { success, stderr } = await new Deno.Command("openssl", {
      args: ["verify", "-x509_strict", "-CAfile", ca, "-untrusted", cert, cert],
    }).output();
    ok(success, new TextDecoder().decode(stderr));
  } catch (error) {
    // Not on this machine.
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
