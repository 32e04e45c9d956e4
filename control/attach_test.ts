/** A whole control with a join port, and what may and may not be done there. */
import { equal, match, ok, rejects } from "node:assert/strict";
import tls from "node:tls";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { formatAddress } from "@heddle/common/address";
import { readJoinToken } from "@heddle/common/attach/join_token";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import {
  createIssuing,
  createKey,
  createRequest,
  createRoot,
  readCertificate,
} from "@heddle/common/pki";
import { connectRpc } from "@heddle/common/rpc_client";
import { encodeAttachedState } from "@heddle/proto/attached_state";
import { AdminService } from "@heddle/proto/gen/admin";
import { AgentService } from "@heddle/proto/gen/agent";
import { AttachService, ClaimRequestSchema, JoinTokenService } from "@heddle/proto/gen/attach";
import { CertificateService } from "@heddle/proto/gen/identity";
import type { Control } from "./control.ts";
import { Site } from "./site_fake.ts";

const HOUR_MS = 3_600_000;
const LEASE_MS = 30_000;

/** A control where engines can attach, and what calls it. */
async function joinable(site: Site) {
  const below = { cluster: "test", validMs: HOUR_MS, now: Date.now(), fleet: true };
  const fleet = await createIssuing(site.authority, below);
  const issuing = {
    certificate_file: `${site.folder}/fleet.pem`,
    key_file: `${site.folder}/fleet-key.pem`,
  };
  await Deno.writeTextFile(issuing.certificate_file, fleet.certificatePem);
  await Deno.writeTextFile(issuing.key_file, fleet.keyPem);
  const control = await site.start({ attachLeaseMs: LEASE_MS }, {
    issuing,
    join: { host: "127.0.0.1", port: 0 },
  });
  const operator = site.connect("admin", await site.issue({ role: "operator", name: "ann" }));
  return { control, operator, tokens: createClient(JoinTokenService, operator) };
}

async function call<T>(
  control: Control,
  tls: Pick<TlsMaterial, "ca"> & Partial<TlsMaterial>,
  use: (client: ReturnType<typeof createClient<typeof AttachService>>) => Promise<T>,
): Promise<T> {
  const address = control.join;
  if (address === undefined) throw new Error("it has no join port");
  const connection = connectRpc({ url: `https://${formatAddress(address)}`, tls });
  try {
    return await use(createClient(AttachService, connection.transport));
  } finally {
    connection.close();
  }
}

async function join(control: Control, ca: string, token: string): Promise<TlsMaterial> {
  const key = await createKey();
  const requestPem = await createRequest(key);
  const { chainPem } = await call(control, { ca }, (client) => client.join({ token, requestPem }));
  return { cert: chainPem, key, ca };
}

const claimOf = (parts: { readonly engineId?: string; readonly deploymentId?: string } = {}) =>
  create(ClaimRequestSchema, {
    engineId: "e1",
    state: encodeAttachedState("serving"),
    nodes: [{ index: 0 }],
    ...parts,
  });

Deno.test("a join token gets a short-lived certificate of its deployment, and a lease", async () => {
  await using site = await Site.make();
  const { control, operator, tokens } = await joinable(site);
  const { token, tokenId } = await tokens.createJoinToken({ deploymentId: "rented" });
  const { ca } = readJoinToken(token);
  const held = await join(control, ca, token);
  const { identity, notAfter } = readCertificate(held.cert);
  equal(identity?.role, "attached");
  equal(identity?.name, "rented");
  ok(notAfter <= Date.now() + HOUR_MS);
  const answer = await call(control, held, (client) => client.claim(claimOf()));
  equal(answer.leaseMs, BigInt(LEASE_MS));
  equal(answer.published, false);
  match(answer.waitingFor, /HEDDLE_ENGINE_MODEL/);
  const { nodes } = await createClient(AdminService, operator).listNodes({});
  equal(nodes.find(({ name }) => name === "rented/e1/0")?.address, "127.0.0.1");
  const { replicas } = await createClient(AdminService, operator).listReplicas({});
  equal(replicas[0]?.attached?.deploymentId, "rented");
  const metrics = await fetch(`http://${formatAddress(control.metrics)}/metrics`);
  match(await metrics.text(), /heddle_control_attached_engines\{state="serving"\} 1/);
  // With what it holds it gets the next one.
  const requestPem = await createRequest(held.key);
  const next = await call(control, held, (client) => client.join({ token: "", requestPem }));
  equal(readCertificate(next.chainPem).identity?.name, "rented");
  const { records } = await createClient(AdminService, operator).listAudit({ limit: 1 });
  equal(records[0]?.action, "join_token");
  match(records[0]?.reason ?? "", new RegExp(tokenId));
  ok(!site.log.some((line) => line.includes(token)));
});

Deno.test("an attached engine's certificate counts on the join port alone, for its deployment alone", async () => {
  await using site = await Site.make();
  const { control, tokens } = await joinable(site);
  const { token } = await tokens.createJoinToken({ deploymentId: "rented" });
  const held = await join(control, readJoinToken(token).ca, token);
  await rejects(
    call(control, held, (client) => client.claim(claimOf({ deploymentId: "other" }))),
    /its join token is for "rented"/,
  );
  for (const listener of ["agents", "admin"] as const) {
    const transport = site.connect(listener, held);
    await rejects(
      listener === "admin"
        ? createClient(AdminService, transport).listNodes({})
        : createClient(AgentService, transport).connect((async function* () {})())
          [Symbol.asyncIterator]().next(),
      /role attached|permission/i,
    );
  }
  // And nobody else's counts there.
  const agent = await site.issue({ role: "agent", name: "n1" });
  await rejects(call(control, agent, (client) => client.claim(claimOf())), /role attached/);
  await rejects(
    call(control, { ca: held.ca }, (client) => client.claim(claimOf())),
    /unauthenticated/,
  );
});

Deno.test("the join listener refuses every wrong certificate, also after a reload", async (t) => {
  await using site = await Site.make();
  const { control, operator } = await joinable(site);
  const right = { role: "attached", name: "rented" } as const;
  const struck = await site.issue(right);
  const serial = readCertificate(struck.cert).serial;
  await createClient(CertificateService, operator)
    .strike({ struck: { case: "serial", value: serial } });
  const stranger = await createRoot({ cluster: "test", validMs: HOUR_MS, now: Date.now() });
  const expired = await site.issue({ ...right, validMs: -1_000 });
  const wrong: readonly (readonly [string, TlsMaterial, string])[] = [
    ["none", { ...struck, cert: "", key: "" }, right.name],
    ["another authority's", await site.issue({ ...right, authority: stranger }), right.name],
    ["an expired one", expired, right.name],
    ["a struck one", struck, right.name],
    ["one of another cluster", await site.issue({ ...right, cluster: "b" }), right.name],
    ["another deployment's", await site.issue({ ...right, name: "other" }), right.name],
    ...await Promise.all(
      (["control", "router", "agent", "operator", "monitor"] as const).map(async (role) =>
        [`a ${role}'s`, await site.issue({ ...right, role }), right.name] as const
      ),
    ),
  ];
  const claims = (tls: TlsMaterial, deploymentId: string) =>
    call(control, tls, (client) => client.claim(claimOf({ deploymentId })));
  for (const when of ["at first", "after a reload"]) {
    for (const [what, material, deployment] of wrong) {
      await t.step(`${what} ${when}`, async () => {
        await rejects(claims(material, deployment), /unauthenticated|permission_denied/);
      });
    }
    await t.step(`TLS 1.2 ${when}`, async () => {
      const { join } = control;
      const good = await site.issue(right);
      const shaken = (options: tls.ConnectionOptions) =>
        new Promise<boolean>((resolve) => {
          const socket = tls.connect({ ...join, ALPNProtocols: ["h2"], ...options });
          socket.on("secureConnect", () => {
            socket.destroy();
            resolve(true);
          });
          socket.on("error", () => resolve(false));
        });
      equal(await shaken({ ...good, maxVersion: "TLSv1.2" }), false);
      equal(await shaken(good), true);
    });
    await t.step(`the right one is let in ${when}`, async () => {
      const { leaseMs } = await claims(await site.issue(right), right.name);
      equal(leaseMs, BigInt(LEASE_MS));
    });
    await control.reload();
  }
});

Deno.test("a token that is not good, or was struck, joins nothing", async () => {
  await using site = await Site.make();
  const { control, operator, tokens } = await joinable(site);
  const made = await tokens.createJoinToken({ deploymentId: "rented" });
  const { ca } = readJoinToken(made.token);
  const strikes = createClient(CertificateService, operator);
  await rejects(join(control, ca, "sk-heddle-join-AAAA"), /Cannot read the join token/);
  await rejects(join(control, ca, ""), /want a certificate of role attached/);
  await strikes.strike({ struck: { case: "serial", value: made.tokenId }, reason: "lost" });
  await rejects(join(control, ca, made.token), /ann struck the token/);
  const second = await tokens.createJoinToken({ deploymentId: "rented" });
  const held = await join(control, ca, second.token);
  await strikes.strike({
    struck: { case: "holder", value: { role: "attached", name: "rented" } },
    reason: "given back",
  });
  await rejects(join(control, ca, second.token), /ann struck the token/);
  await rejects(call(control, held, (client) => client.claim(claimOf())));
});

Deno.test("a join token is made for a name, for 90 days at most, and where there is a join port", async () => {
  await using site = await Site.make();
  const { tokens } = await joinable(site);
  await rejects(tokens.createJoinToken({ deploymentId: "a b" }), /is no name of a deployment/);
  await rejects(
    tokens.createJoinToken({ deploymentId: "d", validMs: BigInt(91 * 24 * HOUR_MS) }),
    /want 1m to 90d/,
  );
  await site.stop();
  await site.start();
  const operator = site.connect("admin", await site.issue({ role: "operator", name: "ann" }));
  await rejects(
    createClient(JoinTokenService, operator).createJoinToken({ deploymentId: "d" }),
    /has no section join/,
  );
});
