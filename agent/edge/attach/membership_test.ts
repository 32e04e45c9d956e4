import { deepEqual, equal, rejects, throws } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { formatAddress } from "@heddle/common/address";
import { createJoinToken } from "@heddle/common/attach/join_token";
import {
  createIssuing,
  createLeaf,
  createRoot,
  type KeyPairPem,
  signRequest,
} from "@heddle/common/pki";
import { PEER, startRpcServer } from "@heddle/common/rpc_server";
import { HeddleError } from "@heddle/proto/error";
import { AttachService, ClaimRequestSchema } from "@heddle/proto/gen/attach";
import { Membership } from "./membership.ts";

const HOUR_MS = 3_600_000;
const CLAIM = create(ClaimRequestSchema, { engineId: "e" });

interface Joins extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** "join by token", "join by certificate" and "claim", in order. */
  readonly asked: string[];
  /** What fails from now on. */
  refuse: "nothing" | "certificates" | "claims";
}

/** A join port that signs for whoever asks, and keeps count. */
async function joins(): Promise<Joins> {
  const below = { cluster: "c", validMs: HOUR_MS, now: Date.now() };
  const root = await createRoot(below);
  const fleet = await createIssuing(root, { ...below, fleet: true });
  const control = await createLeaf(root, {
    identity: { cluster: "c", role: "control", name: "control" },
    hosts: ["127.0.0.1"],
    validMs: HOUR_MS,
    now: Date.now(),
  });
  const asked: string[] = [];
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: { cert: control.certificatePem, key: control.keyPem, ca: root.certificatePem },
    certificateOptional: true,
    routes: (to) =>
      void to.service(AttachService, {
        async join({ token, requestPem }) {
          asked.push(token === "" ? "join by certificate" : "join by token");
          if (token === "" && it.refuse === "certificates") throw refused();
          return { chainPem: await chain(fleet, requestPem) };
        },
        claim(_request, context) {
          asked.push("claim");
          const { identity } = context.values.get(PEER);
          if (identity?.role !== "attached" || it.refuse === "claims") throw refused();
          return { leaseMs: 30_000n };
        },
      }),
  });
  const it: Joins = {
    url: `https://${formatAddress(server.address)}`,
    token: await createJoinToken(fleet, {
      cluster: "c",
      deployment: "d",
      id: "0".repeat(32),
      issuedAt: Date.now(),
      expiresAt: Date.now() + HOUR_MS,
      ca: root.certificatePem,
    }),
    asked,
    refuse: "nothing",
    [Symbol.asyncDispose]: () => server.close(0),
  };
  return it;
}

async function chain(fleet: KeyPairPem, requestPem: string): Promise<string> {
  const leaf = await signRequest(fleet, requestPem, {
    identity: { cluster: "c", role: "attached", name: "d" },
    hosts: [],
    validMs: HOUR_MS,
    now: Date.now(),
  });
  return `${leaf.trim()}\n${fleet.certificatePem}`;
}

const refused = () => new HeddleError("unauthenticated", "not today");

Deno.test("a membership joins once by its token, and follows its certificate in time", async () => {
  await using port = await joins();
  let later = 0;
  const member = new Membership({
    urls: [port.url],
    token: port.token,
    now: () => Date.now() + later,
  });
  equal((await member.claim(CLAIM)).leaseMs, 30_000n);
  await member.claim(CLAIM);
  deepEqual(port.asked.splice(0), ["join by token", "claim", "claim"]);
  later = HOUR_MS * 0.8;
  await member.claim(CLAIM);
  deepEqual(port.asked.splice(0), ["join by certificate", "claim"]);
  // The new certificate cannot be had: the token gets another one.
  port.refuse = "certificates";
  await member.claim(CLAIM);
  deepEqual(port.asked.splice(0), ["join by certificate", "join by token", "claim"]);
});

Deno.test("a membership whose certificate is refused joins anew by its token", async () => {
  await using port = await joins();
  const member = new Membership({ urls: [port.url], token: port.token, now: Date.now });
  await member.claim(CLAIM);
  port.refuse = "claims";
  await rejects(member.claim(CLAIM), /not today/);
  port.refuse = "nothing";
  port.asked.splice(0);
  await member.claim(CLAIM);
  deepEqual(port.asked, ["join by token", "claim"]);
});

Deno.test("a membership asks the next control when one is away, and first the one that answered", async () => {
  await using port = await joins();
  const away = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const gone = `https://127.0.0.1:${"port" in away.addr ? away.addr.port : 0}`;
  away.close();
  const member = new Membership({ urls: [gone, port.url], token: port.token, now: Date.now });
  await member.claim(CLAIM);
  await member.claim(CLAIM);
  deepEqual(port.asked, ["join by token", "claim", "claim"]);
  const alone = new Membership({ urls: [gone], token: port.token, now: Date.now });
  await rejects(alone.claim(CLAIM), /ECONNREFUSED/);
});

Deno.test("a membership shows its token to no control of another authority", async () => {
  await using ours = await joins();
  await using theirs = await joins();
  const member = new Membership({ urls: [theirs.url], token: ours.token, now: Date.now });
  await rejects(member.claim(CLAIM));
  deepEqual(theirs.asked, []);
});

Deno.test("a membership without a token speaks plaintext, and so only on loopback", () => {
  const make = (url: string) => new Membership({ urls: [url], token: undefined, now: Date.now });
  make("http://127.0.0.1:7444");
  throws(() => make("https://control:7444"), /set HEDDLE_JOIN_TOKEN/);
  throws(() => make("http://control:7444"), /only loopback/);
  throws(
    () => new Membership({ urls: [], token: undefined, now: Date.now }),
    /no control is named/,
  );
});
