/** Keys and scopes by whatever names them; what ends them is said by what it is, and asked. */
import { deepEqual, equal, match } from "node:assert/strict";
import { HeddleError } from "@heddle/proto/error";
import { ScopeKind, TenancyService } from "@heddle/proto/gen/tenancy";
import { withControl } from "./testing/app_fake.ts";

const KEY = { id: "key_1", settings: { name: "ci" }, projectPath: "acme/chat", state: "active" };
const SCOPES = [
  { id: "proj_1", kind: ScopeKind.PROJECT, path: "acme/chat", keys: 1 },
  { id: "org_1", kind: ScopeKind.ORGANISATION, path: "acme", keys: 1 },
];

async function withTenancy(
  use: (
    run: Parameters<Parameters<typeof withControl>[1]>[0],
    done: string[],
  ) => Promise<void>,
): Promise<void> {
  const done: string[] = [];
  await withControl((router) =>
    router.service(TenancyService, {
      listKeys: ({ keys: [name] }) => {
        if (name === undefined) return { keys: [] };
        if (name === "ci" || name === KEY.id) return { keys: [KEY] };
        throw new HeddleError("not_found", `Cannot show: there is no key "${name}"`);
      },
      listScopes: ({ in: name }) => ({
        scopes: name === "chat" ? SCOPES.slice(0, 1) : name === "acme" ? SCOPES : [],
      }),
      getLimits: () => ({ limits: [] }),
      queryUsage: () => ({ rows: [] }),
      listPrices: () => ({ prices: [] }),
      revokeKey({ key }) {
        done.push(`revoke ${key}`);
        return { key: KEY };
      },
      rotateKey({ key }) {
        done.push(`rotate ${key}`);
        return { key: KEY, secret: "sk-heddle-x" };
      },
      deleteScope({ scope }) {
        done.push(`delete ${scope}`);
        return { revokedKeys: 1 };
      },
    }), (run) => use(run, done));
}

const ASKING = [
  ["keys revoke ci", 'Revoke key "ci" in acme/chat, key_1, for good?', "revoke key_1"],
  [
    "keys rotate ci --overlap 0s",
    'End the secret of key "ci" in acme/chat, key_1 now? Who still uses it is refused.',
    "rotate key_1",
  ],
  ["projects delete chat", "Delete project acme/chat and revoke 1 key?", "delete proj_1"],
  [
    "orgs delete acme",
    "Delete organisation acme, all that is in it and revoke 1 key?",
    "delete org_1",
  ],
] as const;

for (const [line, question, does] of ASKING) {
  Deno.test(`${line}: says what it means before it asks, and acts on that`, async () => {
    await withTenancy(async (run, done) => {
      const asked: string[] = [];
      const ask = (yes: boolean) => (text: string) => {
        asked.push(text);
        return Promise.resolve(yes);
      };
      const args = line.split(" ");
      equal((await run(args, { ask: ask(false) })).err, "Not done: it was not confirmed\n");
      match((await run(args)).err, /^Not done: .* say --yes\n$/);
      deepEqual(done, []);
      equal((await run(args, { ask: ask(true) })).failed, false);
      equal((await run([...args, "--yes"])).failed, false);
      deepEqual(asked, [question, question]);
      deepEqual(done, [does, does]);
    });
  });
}

Deno.test("delete and show refuse a scope of another kind", async () => {
  await withTenancy(async (run, done) => {
    const wrong = '"acme" is an organisation, not a project. Show it with: heddle orgs show acme\n';
    equal((await run(["projects", "delete", "acme", "--yes"])).err, wrong);
    equal((await run(["projects", "show", "acme"])).err, wrong);
    deepEqual(done, []);
  });
});

Deno.test("empty lists say so in a sentence with the next step, in a pipe on standard error", async () => {
  await withTenancy(async (run) => {
    const lines = [
      [
        "limits show acme",
        /^Nothing limits acme\. Set a limit with: heddle limits set acme --rpm 60/,
      ],
      [
        "keys list",
        /^No key yet\. Make one with: heddle keys create NAME --project org\/project\n$/,
      ],
      ["projects list", /^No project yet\. Create one with: heddle projects create org/],
      [
        "usage",
        /^Nothing was used in that time\. Look further back with: heddle usage --since 30d\n$/,
      ],
      ["prices list", /^No price is set: .* Set one with: heddle prices set MODEL --request 2\n$/],
    ] as const;
    for (const [line, words] of lines) {
      const args = line.split(" ");
      match((await run(args, { terminal: true })).out, words);
      const piped = await run(args);
      match(piped.out, /^[A-Z ]+(\t[A-Z ]+)*\n$/);
      match(piped.err, words);
      const form = async (output: string) => (await run([...args, "-o", output])).out;
      equal(await form("json"), "[]\n");
      equal(await form("yaml"), "[]\n");
      match(await form("csv"), /^[a-z_0-9]+(,[a-z_0-9]+)+\r\n$/);
    }
  });
});
