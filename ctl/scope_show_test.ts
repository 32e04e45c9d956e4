/** `orgs`, `teams` and `projects show`, as whole commands, against a control that answers. */
import { deepEqual, equal, match } from "node:assert/strict";
import type { ConnectRouter } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import { BudgetPeriod, ScopeKind, TenancyService } from "@heddle/proto/gen/tenancy";
import { withControl } from "./testing/app_fake.ts";

const MADE = { createdAtS: 1_799_000_000n, createdBy: "ann" };

const SCOPES = [
  {
    ...MADE,
    id: "org_1",
    kind: ScopeKind.ORGANISATION,
    path: "acme",
    keys: 3,
    limits: {
      requestsPerMinute: 600n,
      budgetMicro: 100_000_000n,
      budgetPeriod: BudgetPeriod.MONTH,
    },
    spentMicro: 1_500_000n,
  },
  { ...MADE, id: "team_1", kind: ScopeKind.TEAM, path: "acme/research", keys: 2 },
  {
    ...MADE,
    id: "proj_1",
    kind: ScopeKind.PROJECT,
    path: "acme/research/chat",
    keys: 2,
    limits: { concurrentRequests: 4 },
    routingProfile: "batch",
    band: "gold",
  },
  { ...MADE, id: "proj_2", kind: ScopeKind.PROJECT, path: "acme/search", keys: 1 },
];

const FROM_ORG = {
  name: "requests_per_minute",
  value: 600n,
  scopeKind: ScopeKind.ORGANISATION,
  scopeId: "org_1",
  scopeName: "acme",
};

const FROM_PROJECT = {
  name: "concurrent_requests",
  value: 4n,
  scopeKind: ScopeKind.PROJECT,
  scopeId: "proj_1",
  scopeName: "chat",
};

/** As control does: the scope itself and all that is in it; limits by the scope's id. */
function tenancy(router: ConnectRouter): void {
  router.service(TenancyService, {
    listScopes: ({ in: name }) => {
      const at = SCOPES.find(({ id, path }) => id === name || path === name);
      if (at === undefined) throw new HeddleError("not_found", `Cannot list: no "${name}"`);
      const scopes = SCOPES.filter(({ path }) => `${path}/`.startsWith(`${at.path}/`));
      return { scopes };
    },
    getLimits: ({ scope }) => ({
      limits: scope === "proj_1" ? [FROM_ORG, FROM_PROJECT] : scope === "org_1" ? [FROM_ORG] : [],
    }),
  });
}

Deno.test("orgs, teams and projects show: what is in one, its own limits, and all that hold", async () => {
  await withControl(tenancy, async (run) => {
    const shown = async (...args: string[]) => (await run(args, { terminal: true })).out;
    equal(
      await shown("orgs", "show", "acme"),
      `Organisation:  acme
Id:            org_1
Teams:         1
Projects:      2
Keys:          3
Own limits:    600 rpm, budget 100/month
Spent:         1.5
Created:       2027-01-03 18:13Z by ann

LIMIT                VALUE  FROM               SPENT  REFILLS IN
requests per minute  600    organisation acme  -      -
`,
    );
    equal(
      await shown("teams", "show", "team_1"),
      `Team:        acme/research
Id:          team_1
Projects:    1
Keys:        2
Own limits:  none
Created:     2027-01-03 18:13Z by ann

Nothing limits acme/research. Set a limit with: heddle limits set acme/research --rpm 60; --help has the others
`,
    );
    equal(
      await shown("projects", "show", "acme/research/chat"),
      `Project:     acme/research/chat
Id:          proj_1
Keys:        2
Own limits:  4 at a time
Band:        gold
Routing:     batch
Created:     2027-01-03 18:13Z by ann

LIMIT                VALUE  FROM               SPENT  REFILLS IN
requests per minute  600    organisation acme  -      -
concurrent requests  4      project chat       -      -
`,
    );
  });
});

Deno.test("orgs show: for machines, and for who takes one kind for another", async () => {
  await withControl(tenancy, async (run) => {
    const record = JSON.parse((await run(["orgs", "show", "acme", "-o", "json"])).out);
    deepEqual(
      [record.path, record.teams, record.projects, record.keys, record.limits.requests_per_minute],
      ["acme", 1, 2, 3, 600],
    );
    deepEqual(record.effective_limits.map((limit: { scope_name: string }) => limit.scope_name), [
      "acme",
    ]);
    match((await run(["projects", "show", "proj_1", "-o", "yaml"])).out, /^effective_limits:\n/m);
    const csv = (await run(["projects", "show", "proj_1", "-o", "csv"])).out;
    equal(csv.split("\r\n").length, 4);
    const other = await run(["teams", "show", "acme"]);
    deepEqual([other.out, other.failed], ["", true]);
    match(other.err, /"acme" is an organisation, not a team\. Show it with: heddle orgs show acme/);
    const none = await run(["orgs", "show", "nobody"]);
    deepEqual([none.out, none.failed], ["", true]);
    match(none.err, /no "nobody"/);
  });
});
