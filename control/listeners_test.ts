/** Whom control's listeners refuse. What these guard against fails silently: somebody is let in. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import tls from "node:tls";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { formatAddress } from "@heddle/common/address";
import type { Role } from "@heddle/common/identity";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import {
  createIssuing,
  createLeaf,
  createRequest,
  createRoot,
  readCertificate,
} from "@heddle/common/pki";
import { connectRpc } from "@heddle/common/rpc_client";
import { AdminService } from "@heddle/proto/gen/admin";
import { CapacityService } from "@heddle/proto/gen/capacity";
import { LiveService } from "@heddle/proto/gen/live";
import { AgentService } from "@heddle/proto/gen/agent";
import { CertificateService, RenewalService } from "@heddle/proto/gen/identity";
import { RouterService } from "@heddle/proto/gen/router";
import { TenancyService } from "@heddle/proto/gen/tenancy";
import { WeightsService } from "@heddle/proto/gen/weights";
import { OPERATOR_ROLES, ROLE_FOR, sha256 } from "./edge/identity/operators.ts";
import { AgentStream, registration } from "./edge/agent_fake.ts";
import { Site } from "./site_fake.ts";

type Which = "agents" | "admin";
const LISTENERS: readonly Which[] = ["agents", "admin"];
/** A role that each lets in. */
const RIGHT: Readonly<Record<Which, Role>> = { agents: "agent", admin: "operator" };
const HOUR_MS = 3_600_000;

/** What becomes of a caller: the code of the refusal, or undefined for one that is served. */
async function verdict(which: Which, transport: Transport): Promise<Code | undefined> {
  try {
    if (which === "admin") await createClient(AdminService, transport).getVersion({});
    else {
      const agent = new AgentStream(transport);
      agent.send(registration("n1"));
      await agent.expect("registered");
      agent.abort();
    }
    return undefined;
  } catch (error) {
    return ConnectError.from(error).code;
  }
}

for (const which of LISTENERS) {
  Deno.test(`the ${which} listener refuses every wrong certificate, also after a reload`, async (t) => {
    await using site = await Site.make();
    const control = await site.start();
    const right = { role: RIGHT[which], name: which === "agents" ? "n1" : "ann" };
    const struck = await site.issue({ role: right.role, name: "struck" });
    const serial = readCertificate(struck.cert).serial;
    const operator = site.connect("admin", await site.issue({ role: "operator", name: "ann" }));
    await createClient(CertificateService, operator)
      .strike({ struck: { case: "serial", value: serial } });
    const stranger = await createRoot({ cluster: "test", validMs: HOUR_MS, now: Date.now() });
    const wrong: readonly (readonly [string, TlsMaterial, Code])[] = [
      ["none", { ...await site.issue(right), cert: "", key: "" }, Code.Unauthenticated],
      [
        "another authority's",
        await site.issue({ ...right, authority: stranger }),
        Code.Unauthenticated,
      ],
      ["an expired one", await site.issue({ ...right, validMs: -1_000 }), Code.Unauthenticated],
      ["a struck one", struck, Code.Unauthenticated],
      [
        "one of another cluster",
        await site.issue({ ...right, cluster: "b" }),
        Code.PermissionDenied,
      ],
      ...await Promise.all(
        (["control", "router", "agent", "operator", "monitor"] as const)
          .filter((role) => role !== right.role)
          .map(async (role) =>
            [`a ${role}'s`, await site.issue({ ...right, role }), Code.PermissionDenied] as const
          ),
      ),
      ...(which === "admin" ? [] : [
        [
          "another node's",
          await site.issue({ ...right, name: "n2" }),
          Code.PermissionDenied,
        ] as const,
      ]),
    ];
    for (const when of ["at first", "after a reload"]) {
      for (const [what, material, code] of wrong) {
        await t.step(`${what} ${when}`, async () => {
          equal(await verdict(which, site.connect(which, material)), code);
        });
      }
      await t.step(`TLS 1.2 ${when}`, async () => {
        const good = await site.issue(right);
        equal(await shake(control[which].port, { ...good, maxVersion: "TLSv1.2" }), "refused");
        equal(await shake(control[which].port, good), "shaken");
      });
      await t.step(`the right one is let in ${when}`, async () => {
        equal(await verdict(which, site.connect(which, await site.issue(right))), undefined);
      });
      await control.reload();
    }
  });
}

function shake(port: number, options: TlsMaterial & { maxVersion?: tls.SecureVersion }) {
  return new Promise<string>((resolve) => {
    const socket = tls.connect({ host: "127.0.0.1", port, ALPNProtocols: ["h2"], ...options });
    socket.on("secureConnect", () => {
      socket.destroy();
      resolve("shaken");
    });
    socket.on("error", () => resolve("refused"));
  });
}

Deno.test("striking a holder ends what stands, and lets in what is issued later", async () => {
  await using site = await Site.make();
  await site.start();
  const before = new AgentStream(
    site.connect("agents", await site.issue({ role: "agent", name: "n1" })),
  );
  before.send(registration("n1"));
  await before.expect("registered");
  const operator = site.connect("admin", await site.issue({ role: "operator", name: "ann" }));
  const certificates = createClient(CertificateService, operator);
  const holder = { role: "agent", name: "n1" };
  await certificates.strike({ struck: { case: "holder", value: holder }, reason: "stolen" });
  await rejects(before.next(), (error) => ConnectError.from(error).code === Code.Unauthenticated);
  match(site.log.join(""), /ann struck it: stolen/);
  // Certificates tell seconds; the one that comes after is of another.
  await site.stop();
  const later = Date.now() + 2_000;
  const pair = await createLeaf(site.authority, {
    identity: { cluster: "test", role: "agent", name: "n1" },
    hosts: [],
    validMs: HOUR_MS,
    now: later,
  });
  await site.start();
  const again = site.connect("agents", await site.issue({ role: "agent", name: "n1" }));
  const stillStruck = await verdict("agents", again);
  const renewed = site.connect("agents", {
    cert: pair.certificatePem,
    key: pair.keyPem,
    ca: site.authority.certificatePem,
  });
  // Kept by the store; what was issued in the same second counts as before.
  ok(stillStruck === Code.Unauthenticated || stillStruck === undefined);
  equal(await verdict("agents", renewed), undefined);
  const listed = await createClient(
    CertificateService,
    site.connect("admin", await site.issue({ role: "operator", name: "ann" })),
  ).listStrikes({});
  deepEqual(listed.strikes.map(({ struck, by, reason }) => [struck, by, reason]), [
    ["agent/n1", "ann", "stolen"],
  ]);
  for (const value of [{ role: "control", name: "control" }, { role: "agent", name: "a b" }]) {
    await rejects(
      createClient(
        CertificateService,
        site.connect("admin", await site.issue({ role: "operator", name: "ann" })),
      ).strike({ struck: { case: "holder", value } }),
      (error) => ConnectError.from(error).code === Code.InvalidArgument,
    );
  }
});

Deno.test("control renews for whom the connection is, as the fleet's authority, and nobody else", async (t) => {
  await using site = await Site.make();
  const options = { cluster: "test", validMs: HOUR_MS, now: Date.now() };
  const fleet = await createIssuing(site.authority, { ...options, fleet: true });
  const issuing = {
    certificate_file: `${site.folder}/fleet.pem`,
    key_file: `${site.folder}/fleet-key.pem`,
  };
  await Deno.writeTextFile(issuing.certificate_file, fleet.certificatePem);
  await Deno.writeTextFile(issuing.key_file, fleet.keyPem);
  await site.start({}, { issuing });
  const renew = async (material: TlsMaterial) => {
    const requestPem = await createRequest(material.key);
    const client = createClient(RenewalService, site.connect("agents", material));
    return (await client.renew({ requestPem })).chainPem;
  };
  const own = await site.issue({ role: "agent", name: "n1" });
  await t.step("the new one is of the same holder, hosts and life, and is let in", async () => {
    const chain = await renew(own);
    const [was, is] = [readCertificate(own.cert), readCertificate(chain)];
    deepEqual([is.identity, is.hosts], [was.identity, was.hosts]);
    ok(Math.abs(is.notAfter - was.notAfter) < 60_000);
    ok(is.serial !== was.serial);
    const material = { ...own, cert: chain };
    equal(await verdict("agents", site.connect("agents", material)), undefined);
    equal(new X509Certificate(await renew(material)).issuer, "CN=Heddle fleet authority of test");
  });
  await t.step("its key makes no operator and no control", async () => {
    for (const role of ["operator", "control", "monitor"] as const) {
      const forged = await site.issue({ role, name: "ann", authority: fleet });
      const cert = `${forged.cert}\n${fleet.certificatePem}`;
      const transport = site.connect("admin", { ...forged, cert });
      equal(await verdict("admin", transport), Code.PermissionDenied, role);
    }
  });
  await t.step("without an authority it says so", async () => {
    await site.stop();
    await site.start();
    await rejects(renew(own), /no issuing section/);
  });
});

Deno.test("a token may do what its role may, for every method there is", async (t) => {
  await using site = await Site.make();
  const file = `${site.folder}/tokens`;
  const lines = await Promise.all(
    OPERATOR_ROLES.map(async (role) => `${role}-1 ${role} ${await sha256(`secret-${role}`)}`),
  );
  await Deno.writeTextFile(file, `# who may do what\n${lines.join("\n")}\n`);
  const control = await site.start({}, { tokensFile: file });
  const methods = SERVICES.flatMap((service): readonly { name: string }[] => service.methods);
  const names = methods.map(({ name }) => name);
  deepEqual(Object.keys(ROLE_FOR).filter((name) => !names.includes(name)), []);
  const call = async (name: string, token: string | undefined) => {
    const connection = connectRpc({
      url: `https://${formatAddress(control.admin)}`,
      tls: { cert: "", key: "", ca: site.authority.certificatePem },
      interceptors: [(next) => (request) => {
        if (token !== undefined) request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      }],
    });
    try {
      await callEmpty(connection.transport, name);
      return undefined;
    } catch (error) {
      return ConnectError.from(error).code;
    } finally {
      connection.close();
    }
  };
  for (const name of names) {
    await t.step(name, async () => {
      const least = OPERATOR_ROLES.indexOf(ROLE_FOR[name] ?? "admin");
      for (const [rank, role] of OPERATOR_ROLES.entries()) {
        const code = await call(name, `secret-${role}`);
        // Whatever else is wrong with an empty request is found only once it is let in.
        equal(code === Code.PermissionDenied, rank < least, `${role}: ${code && Code[code]}`);
      }
      equal(await call(name, "secret-guessed"), Code.Unauthenticated);
      equal(await call(name, undefined), Code.Unauthenticated);
    });
  }
  await t.step(
    "an operator's certificate goes on counting, and the name is on record",
    async () => {
      const operator = site.connect("admin", await site.issue({ role: "operator", name: "ann" }));
      equal(await verdict("admin", operator), undefined);
    },
  );
  await t.step("a token that is taken out of the file counts no more after a reload", async () => {
    await Deno.writeTextFile(file, lines.slice(1).join("\n"));
    await control.reload();
    equal(await call("ListNodes", "secret-viewer"), Code.Unauthenticated);
    equal(await call("ListNodes", "secret-admin"), undefined);
    await Deno.writeTextFile(file, "broken");
    await control.reload();
    equal(await call("ListNodes", "secret-admin"), undefined);
    match(site.log.join(""), /tokens:1: want NAME ROLE HASH/);
  });
  await site.stop();
  await Deno.writeTextFile(file, "ann king 00");
  await rejects(site.start({}, { tokensFile: file }), /want NAME ROLE HASH/);
});

/** Calls a method of the admin listener by name, with an empty request. */
async function* nothing() {
  await Promise.resolve();
  yield {};
}

/** What is served to operators. */
const SERVICES = [
  AdminService,
  CapacityService,
  CertificateService,
  LiveService,
  TenancyService,
  WeightsService,
] as const;

async function callEmpty(transport: Transport, name: string): Promise<void> {
  const signal = AbortSignal.timeout(5_000);
  for (const service of SERVICES) {
    const client = createClient(service, transport);
    for (const [local, method] of Object.entries(service.method)) {
      if (method.name !== name) continue;
      const request = method.methodKind === "client_streaming" ? nothing() : {};
      const answer: unknown = Reflect.get(client, local)(request, { signal });
      if (method.methodKind !== "server_streaming") await answer;
      else for await (const _ of Object(answer)) break;
      return;
    }
  }
  throw new Error(`There is no ${name}`);
}

Deno.test("only routers report, and only for themselves", async () => {
  await using site = await Site.make();
  await site.start();
  const other = site.connect("agents", await site.issue({ role: "router", name: "other" }));
  const report = createClient(RouterService, other).report({ router: "r/1" });
  await rejects(report, (error) => ConnectError.from(error).code === Code.PermissionDenied);
  const agent = site.connect("agents", await site.issue({ role: "agent", name: "n1" }));
  await rejects(createClient(RouterService, agent).report({ router: "n1" }), (error) => {
    return ConnectError.from(error).code === Code.PermissionDenied;
  });
  const router = site.connect("agents", await site.issue({ role: "router", name: "n1" }));
  await rejects(
    (async () => {
      async function* none() {}
      for await (const _ of createClient(AgentService, router).connect(none())) break;
    })(),
  );
});
