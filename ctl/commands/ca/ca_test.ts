/** The certificate commands end to end, and OpenSSL's opinion of what they make. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { identityOfSubjectAltName } from "@heddle/common/identity";
import { createKey, createRequest } from "@heddle/common/pki";
import { Machine, withFolder } from "./machine_fake.ts";

const AGENT = [
  "sign",
  "--role",
  "agent",
  "--name",
  "gpu-1",
  "--host",
  "gpu-1",
  "--host",
  "fd00::1",
];

Deno.test("a key stays where it was made, and the signer says whose it is", async () => {
  await withFolder(async (folder) => {
    const signer = new Machine(folder, "signer");
    const node = new Machine(folder, "node");
    await signer.succeed(["init", "--cluster", "prod"]);
    const request = await node.succeed(["request"]);
    const chain = await signer.succeed(AGENT, request);
    const leaf = new X509Certificate(chain);
    deepEqual(identityOfSubjectAltName(leaf.subjectAltName), {
      cluster: "prod",
      role: "agent",
      name: "gpu-1",
    });
    const stat = await Deno.stat(join(node.certificates, "key.pem"));
    equal((stat.mode ?? 0) & 0o777, 0o600);
    ok(!request.includes("PRIVATE"));
    deepEqual(await namesIn(signer.authority), [
      "fleet-key.pem",
      "fleet.pem",
      "issued.jsonl",
      "issuing-key.pem",
      "issuing.pem",
      "root-key.pem",
      "root.pem",
      "trust.pem",
    ]);
  });
});

Deno.test("a request that names somebody else is signed for whom the signer names", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const key = join(folder, "rogue.pem");
    await Deno.writeTextFile(key, await createKey());
    const rogue = await openssl([
      "req",
      "-new",
      "-key",
      key,
      "-subj",
      "/CN=control",
      "-addext",
      "subjectAltName=URI:spiffe://heddle/prod/control/boss",
    ]);
    if (rogue === undefined) return;
    const leaf = new X509Certificate(await machine.succeed(AGENT, rogue));
    equal(identityOfSubjectAltName(leaf.subjectAltName)?.role, "agent");
    ok(!leaf.subjectAltName?.includes("boss") && !leaf.subject.includes("control"));
  });
});

Deno.test("OpenSSL verifies the chain and reads the names", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const cert = join(folder, "cert.pem");
    await Deno.writeTextFile(
      cert,
      await machine.succeed(AGENT, await machine.succeed(["request"])),
    );
    const root = join(machine.authority, "root.pem");
    for (const purpose of ["sslserver", "sslclient"]) {
      const verified = await openssl([
        "verify",
        "-x509_strict",
        "-purpose",
        purpose,
        "-CAfile",
        root,
        "-untrusted",
        cert,
        cert,
      ]);
      if (verified === undefined) return;
      match(verified, /: OK/);
    }
    const names = await openssl(["x509", "-in", cert, "-noout", "-ext", "subjectAltName"]) ?? "";
    match(names, /URI:spiffe:\/\/heddle\/prod\/agent\/gpu-1, DNS:gpu-1, IP Address:FD00/);
    const alone = await openssl(["verify", "-CAfile", root, cert], { mayFail: true }) ?? "";
    match(alone, /unable to get local issuer/);
  });
});

Deno.test("signing again changes nothing until key, name, host or time ask for it", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const request = await machine.succeed(["request"]);
    const chain = await machine.succeed(AGENT, request);
    equal(await machine.succeed(AGENT, request + chain), chain);
    equal(await machine.succeed(AGENT, (await machine.succeed(["request"])) + chain), chain);
    const others: readonly (readonly [readonly string[], string])[] = [
      [AGENT.with(4, "gpu-2"), request],
      [AGENT.with(2, "router"), request],
      [AGENT.with(6, "other"), request],
      [[...AGENT, "--renew-before", "91d"], request],
      [AGENT, await createRequest(await createKey())],
    ];
    for (const [args, asked] of others) {
      notEqual(await machine.succeed(args, asked + chain), chain, args.join(" "));
    }
    // What is not a certificate, or another authority's, is replaced and never trusted.
    const other = new Machine(join(folder, "elsewhere"), "m");
    await other.succeed(["init", "--cluster", "prod"]);
    const foreign = await other.succeed(AGENT, request);
    notEqual(await machine.succeed(AGENT, request + foreign), foreign);
    notEqual(await machine.succeed(AGENT, `${request}${chain.replace(/MII/g, "AAA")}`), chain);
  });
});

Deno.test("a key that cannot be used is replaced; one that can is kept", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    const file = join(machine.certificates, "key.pem");
    await Deno.mkdir(machine.certificates);
    await Deno.writeTextFile(file, "garbage");
    await machine.succeed(["request"]);
    const key = await Deno.readTextFile(file);
    await machine.succeed(["request"]);
    match(key, /BEGIN PRIVATE KEY/);
    equal(await Deno.readTextFile(file), key);
  });
});

Deno.test("init is repeatable, and refuses to lay a second cluster over the first", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const root = await Deno.readTextFile(join(machine.authority, "root.pem"));
    match(await machine.succeed(["init", "--cluster", "prod"]), /already/);
    const refused = await machine.run(["init", "--cluster", "test"]);
    ok(refused.failed);
    match(refused.err, /that of "prod" is there/);
    equal(await Deno.readTextFile(join(machine.authority, "root.pem")), root);
    await Deno.remove(join(machine.authority, "issuing-key.pem"));
    match((await machine.run(["init", "--cluster", "prod"])).err, /not all there/);
    match((await machine.run(["init", "--cluster", "a b"])).err, /want letters/);
  });
});

Deno.test("sign says what is wrong with what it was given", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    const request = await createRequest(await createKey());
    match((await machine.run(AGENT, request)).err, /heddle ca init/);
    await machine.succeed(["init", "--cluster", "prod"]);
    const cases: readonly (readonly [readonly string[], string, RegExp])[] = [
      [AGENT, "", /want one request/],
      [AGENT, request + request, /want one request/],
      [AGENT, request.replace(/^M/m, "A"), /Cannot read a request/],
      [AGENT.with(4, "../x"), request, /want letters/],
      [AGENT.with(6, "a b"), request, /host name or an address/],
      [[...AGENT, "--valid", "0d"], request, /want a time/],
      [AGENT.with(2, "king"), request, /king/],
    ];
    for (const [args, stdin, words] of cases) {
      const { err, failed } = await machine.run(args, stdin);
      ok(failed, args.join(" "));
      match(err, words);
    }
    const rsa = await openssl(
      ["req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=x"],
    );
    if (rsa !== undefined) match((await machine.run(AGENT, rsa)).err, /not P-256/);
  });
});

Deno.test("no leaf outlives its authority", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    const long = [...AGENT, "--valid", "4000d"];
    const leaf = new X509Certificate(
      await machine.succeed(long, await machine.succeed(["request"])),
    );
    const issuing = new X509Certificate(
      await Deno.readTextFile(join(machine.authority, "issuing.pem")),
    );
    equal(leaf.validTo, issuing.validTo);
  });
});

Deno.test("status lists the newest certificate of every holder", async () => {
  await withFolder(async (folder) => {
    const machine = new Machine(folder, "m");
    await machine.succeed(["init", "--cluster", "prod"]);
    await machine.succeed(AGENT, await machine.succeed(["request"]));
    await machine.succeed([...AGENT, "--valid", "10d"], await machine.succeed(["request"]));
    await new Machine(folder, "ada").succeed(["issue", "--role", "operator", "--name", "ada"]);
    const rows: readonly { role: string; name: string; days_left: number; issuer: string }[] = JSON
      .parse(await machine.succeed(["status", "--json"]));
    deepEqual(rows.map(({ role, name, days_left }) => [role, name, days_left]), [
      ["root", "prod", 3_649],
      ["issuing", "prod", 729],
      ["fleet", "prod", 729],
      ["agent", "gpu-1", 9],
      ["operator", "ada", 89],
    ]);
    deepEqual(await namesIn(join(folder, "ada")), ["ca.pem", "cert.pem", "key.pem"]);
  });
});

Deno.test("the launcher lets it write into its two folders, and other commands nowhere", async () => {
  const launcher = fileURLToPath(new URL("../../../bin/heddle", import.meta.url));
  const flags = async (...args: readonly string[]) => {
    const { stdout } = await new Deno.Command(launcher, {
      args: [...args],
      clearEnv: true,
      // Prints what the runtime would be started with.
      env: {
        PATH: "/usr/bin:/bin",
        HEDDLE_DENO: "/bin/echo",
        HEDDLE_CA: "/a b/ca",
        HEDDLE_TLS: "/tls",
      },
    }).output();
    return new TextDecoder().decode(stdout);
  };
  match(await flags("ca", "status"), /--allow-read=\/a b\/ca,\/tls --allow-write=\/a b\/ca,\/tls /);
  ok(!(await flags("nodes", "ca")).includes("--allow-write"));
});

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}

/** What OpenSSL prints; undefined, with a word about it, where there is none. */
async function openssl(
  args: readonly string[],
  { mayFail = false } = {},
): Promise<string | undefined> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command("openssl", { args: [...args], stdin: "null" }).output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    Deno.stderr.writeSync(new TextEncoder().encode("skipped: there is no openssl here\n"));
    return undefined;
  }
  const decoder = new TextDecoder();
  const text = decoder.decode(output.stdout) + decoder.decode(output.stderr);
  ok(mayFail || output.success, text);
  return mayFail ? text : decoder.decode(output.stdout);
}
