import { deepEqual, equal, match, ok, rejects, throws } from "node:assert/strict";
import { createIssuing, createRoot } from "../pki.ts";
import {
  ATTACH_ENVIRONMENT,
  readAttachEnvironment,
  writeAttachEnvironment,
} from "./environment.ts";
import { createJoinToken, type JoinToken, readJoinToken, verifyJoinToken } from "./join_token.ts";

const NOW = 1_700_000_000_000;
const below = { cluster: "prod", validMs: 3_600_000, now: Date.now() };

async function authority() {
  const root = await createRoot(below);
  return { root, fleet: await createIssuing(root, { ...below, fleet: true }) };
}

Deno.test("readAttachEnvironment() reads what writeAttachEnvironment() writes", () => {
  const settings = Object.fromEntries(
    Object.keys(ATTACH_ENVIRONMENT).map((setting) => [setting, `value of ${setting}`]),
  );
  const environment = new Map(Object.entries(writeAttachEnvironment(settings)));
  equal(environment.size, Object.keys(ATTACH_ENVIRONMENT).length);
  deepEqual(readAttachEnvironment((name) => environment.get(name)), settings);
});

Deno.test("readAttachEnvironment() takes what is empty for not told", () => {
  const environment = new Map([["HEDDLE_ENGINE_ID", " e "], ["HEDDLE_HOST_ID", "  "]]);
  deepEqual(readAttachEnvironment((name) => environment.get(name)), { engineId: "e" });
});

Deno.test("a join token says its deployment, and what to trust", async () => {
  const { root, fleet } = await authority();
  const facts: JoinToken = {
    cluster: "prod",
    deployment: "rented",
    id: "0123456789abcdef0123456789abcdef",
    issuedAt: NOW,
    expiresAt: NOW + 1_000,
    ca: `${root.certificatePem}\n${fleet.certificatePem}`,
  };
  const token = await createJoinToken(fleet, facts);
  // Logs hide what begins so.
  match(token, /^sk-heddle-join-[A-Za-z0-9_-]+$/);
  const { ca, ...rest } = await verifyJoinToken(token, {
    issuerPem: fleet.certificatePem,
    now: NOW,
  });
  deepEqual({ ...rest, ca: facts.ca }, facts);
  equal(ca.match(/BEGIN CERTIFICATE/g)?.length, 2);
  ok(ca.includes(root.certificatePem.trim().split("\n")[1] ?? "none"));
  equal(readJoinToken(token).deployment, "rented");
});

Deno.test("a join token of another authority, a changed one and an old one are refused", async () => {
  const { root, fleet } = await authority();
  const facts: JoinToken = {
    cluster: "prod",
    deployment: "rented",
    id: "0123456789abcdef0123456789abcdef",
    issuedAt: NOW,
    expiresAt: NOW + 1_000,
    ca: root.certificatePem,
  };
  const token = await createJoinToken(fleet, facts);
  const check = (text: string, now = NOW, issuerPem = fleet.certificatePem) =>
    verifyJoinToken(text, { issuerPem, now });
  await rejects(check(token, NOW, (await authority()).fleet.certificatePem), /not of this cluster/);
  await rejects(check(token, NOW + 1_000), /the token ended at 2023/);
  const flipped = token.slice(0, 40) + (token[40] === "A" ? "B" : "A") + token.slice(41);
  await rejects(check(flipped), /damaged|not of this cluster/);
  for (
    const bad of [
      "",
      "x",
      "sk-heddle-join-",
      "sk-heddle-join-AAAA",
      `${token}!`,
      token.slice(0, 90),
    ]
  ) {
    await rejects(check(bad), /Cannot read the join token/, bad);
    throws(() => readJoinToken(bad), /Cannot read the join token/);
  }
});
