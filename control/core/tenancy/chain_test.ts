import { equal, throws } from "node:assert/strict";
import { findHolder, findKey, findScope } from "./chain.ts";
import type { StoredKey, StoredScope, Tenancy } from "./stored.ts";

const said = { createdAt: 0, createdBy: "ann" };

function scope(kind: StoredScope["kind"], name: string, parent = ""): StoredScope {
  return { kind, name, parent, routingProfile: "", band: "", ...said };
}

function key(name: string, project: string, more: Partial<StoredKey> = {}): StoredKey {
  const secrets = [{ sha256: "00", shown: `sk-heddle-${name}` }];
  return {
    name,
    project,
    secrets,
    band: "",
    routingProfile: "",
    mayExplain: false,
    ...said,
    ...more,
  };
}

const TENANCY: Tenancy = {
  scopes: new Map([
    ["org_1", scope("organisation", "acme")],
    ["team_1", scope("team", "research", "org_1")],
    ["proj_1", scope("project", "chat", "team_1")],
    ["org_2", scope("organisation", "beta")],
    ["proj_2", scope("project", "chat", "org_2")],
    ["proj_3", scope("project", "acme", "org_2")],
    ["proj_4", scope("project", "batch", "org_2")],
    ["proj_5", { ...scope("project", "old", "org_2"), deletedAt: 1 }],
  ]),
  keys: new Map([
    ["key_1", key("ci", "proj_1")],
    ["key_2", key("ci", "proj_2")],
    ["key_3", key("nightly", "proj_4", { revokedAt: 1 })],
    ["key_4", key("nightly", "proj_4")],
    ["key_5", key("batch", "proj_1")],
    ["key_6", key("gone", "proj_1", { revokedAt: 1 })],
  ]),
  limits: new Map(),
  prices: new Map(),
};

Deno.test("findScope() takes an id, a path, or the end of one path alone", () => {
  const find = (name: string) => findScope(TENANCY, "show", { name });
  equal(find("proj_1"), "proj_1");
  equal(find("acme/research/chat"), "proj_1");
  equal(find("research/chat"), "proj_1");
  equal(find("research"), "team_1");
  equal(find("batch"), "proj_4");
  // A whole path goes before the end of one.
  equal(find("acme"), "org_1");
  equal(findScope(TENANCY, "show", { name: "acme", kind: "project" }), "proj_3");
  throws(() => find("chat"), {
    message: 'Cannot show: "chat" may be 2 things, say which: acme/research/chat, beta/chat',
  });
  for (const name of ["", "hat", "h/chat", "/chat", "old", "acme/nothing"]) {
    throws(() => find(name), /there is no organisation, team or project/, name);
  }
});

Deno.test("findScope() says how to make a project that is not there", () => {
  const refused = (name: string) => {
    try {
      return findScope(TENANCY, "create a key", { name, kind: "project" });
    } catch (error) {
      return error instanceof Error ? error.message.replace(/^.*Make it with: /, "") : "";
    }
  };
  equal(refused("new/web"), "heddle orgs create new, then heddle projects create new/web");
  equal(refused("acme/web"), "heddle projects create acme/web");
  equal(
    refused("acme/ops/web"),
    "heddle teams create acme/ops, then heddle projects create acme/ops/web",
  );
  equal(refused("web"), "heddle orgs create ORG, then heddle projects create ORG/web");
  equal(
    refused("a/b/c/d"),
    'Cannot create a key: there is no project "a/b/c/d"; known: acme, beta',
  );
});

Deno.test("findKey() takes an id, what is shown of a secret, or a name that is one key's", () => {
  const find = (name: string) => findKey(TENANCY, "show", name);
  equal(find("key_1"), "key_1");
  equal(find("sk-heddle-batch"), "key_5");
  equal(find("chat/batch"), "key_5");
  equal(find("beta/chat/ci"), "key_2");
  // One that is revoked does not stand in the way of its successor, and is found where it is alone.
  equal(find("nightly"), "key_4");
  equal(find("gone"), "key_6");
  throws(() => find("chat/ci"), {
    message: 'Cannot show: "chat/ci" may be 2 things, say which: ' +
      "acme/research/chat/ci (key_1), beta/chat/ci (key_2)",
  });
  for (const name of ["", "i", "x/ci", "/ci"]) throws(() => find(name), /there is no key/, name);
});

Deno.test("findHolder() takes what any of them is called, and refuses what may be both", () => {
  const find = (name: string) => findHolder(TENANCY, "show limits", name);
  equal(find("acme"), "org_1");
  equal(find("research/chat"), "proj_1");
  equal(find("nightly"), "key_4");
  equal(find("beta/chat/ci"), "key_2");
  throws(() => find("batch"), {
    message: 'Cannot show limits: "batch" may be 2 things, say which: ' +
      "acme/research/chat/batch (key_5), beta/batch",
  });
  throws(() => find("nobody"), /there is no organisation, team or project "nobody"/);
});
