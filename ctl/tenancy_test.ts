import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  BudgetPeriod,
  EffectiveLimitSchema,
  KeyViewSchema,
  LimitsSchema,
  ModelPriceSchema,
  ScopeKind,
  ScopeViewSchema,
  UsageRowSchema,
} from "@heddle/proto/gen/tenancy";
import { keyListing } from "./commands/tenancy/key_list.ts";
import { formatKey, limitListing } from "./commands/tenancy/key_show.ts";
import { formatLimits, limitsOf } from "./commands/tenancy/limit_flags.ts";
import { priceListing, priceOf } from "./commands/tenancy/prices.ts";
import { scopeListing } from "./commands/tenancy/scopes.ts";
import { formatUnits, parseBudget, parseUnits } from "./commands/tenancy/units.ts";
import { parseBy, usageListing } from "./commands/tenancy/usage.ts";
import { type Listing, type Output, writeListing } from "./table.ts";

function textOf<Row>(listing: Listing<Row>, output: Output = "table"): string {
  let text = "";
  const out = (more: string) => void (text += more);
  writeListing({ terminal: true, color: false, out, err: () => {} }, listing, output);
  return text;
}

const KEY = create(KeyViewSchema, {
  id: "key_1",
  settings: { name: "ci\u001b[2J bot", band: "gold", models: { items: ["demo"] } },
  projectPath: "acme/chat",
  secrets: [
    { prefix: "sk-heddle-AAAAAA", expiresAtS: 1_800_000_000n },
    { prefix: "sk-heddle-BBBBBB" },
  ],
  state: "active",
  createdAtS: 1_799_000_000n,
  createdBy: "ann",
  limits: { requestsPerMinute: 60n },
});

Deno.test("parseUnits() and formatUnits() are exact, and take nothing that is not", () => {
  const cases = [["0", 0n], ["1", 1_000_000n], ["0.5", 500_000n], ["0.000001", 1n]] as const;
  for (const [text, micro] of cases) {
    equal(parseUnits(text), micro);
    equal(formatUnits(micro), text);
  }
  equal(formatUnits(-1_500_000n), "-1.5");
  for (const text of ["", "-1", "1e3", ".5", "1.", "0.0000001", "1,5", "9".repeat(13)]) {
    throws(() => parseUnits(text), /want a number of units/, text);
  }
  deepEqual(parseBudget("2.5/month"), {
    budgetMicro: 2_500_000n,
    budgetPeriod: BudgetPeriod.MONTH,
  });
  for (const text of ["5", "5/year", "/day", "x/day"]) throws(() => parseBudget(text));
});

Deno.test("limitsOf() says what is set, what is taken away, and what stays", () => {
  deepEqual(limitsOf({ rpm: "60", tpm: "none", models: "a, b" }), {
    limits: { requestsPerMinute: 60n, models: { items: ["a", "b"] } },
    keep: ["concurrent_requests", "budget"],
  });
  deepEqual(limitsOf({}).keep.length, 5);
  for (const rpm of ["-1", "1.5", "many"]) throws(() => limitsOf({ rpm }), /want a whole number/);
  const limits = create(LimitsSchema, {
    tokensPerMinute: 5n,
    concurrentRequests: 2,
    budgetMicro: 1n,
    budgetPeriod: BudgetPeriod.DAY,
    models: {},
  });
  equal(formatLimits(limits), "5 tpm, 2 at a time, budget 0.000001/day, models none");
});

Deno.test("keys: the table, what is shown of one, and where its limits come from", () => {
  equal(
    textOf(keyListing([KEY])),
    "KEY    NAME        SHOWN                              PROJECT    STATE   EXPIRES  LAST USED\n" +
      "key_1  ci [2J bot  sk-heddle-AAAAAA sk-heddle-BBBBBB  acme/chat  active  -        -\n",
  );
  equal(
    formatKey(KEY),
    "Key:          key_1\n" +
      "Name:         ci [2J bot\n" +
      "Project:      acme/chat\n" +
      "State:        active\n" +
      "Secret:       sk-heddle-AAAAAA… until 2027-01-15 08:00Z\n" +
      "Secret:       sk-heddle-BBBBBB…\n" +
      "Models:       demo\n" +
      "Paths:        all\n" +
      "Addresses:    all\n" +
      "Band:         gold\n" +
      "Routing:      its project's, or the model's own\n" +
      "May explain:  no\n" +
      "Created:      2027-01-03 18:13Z by ann\n" +
      "Last used:    never\n",
  );
  const scope = { scopeKind: ScopeKind.ORGANISATION, scopeName: "acme" };
  const limits = [
    create(EffectiveLimitSchema, { name: "requests_per_minute", value: 5n, ...scope }),
    create(EffectiveLimitSchema, {
      name: "budget",
      value: 100_000_000n,
      period: BudgetPeriod.MONTH,
      spentMicro: 1_500_000n,
      refillMs: 5_400_000n,
      scopeKind: ScopeKind.KEY,
      scopeName: "ci",
    }),
  ];
  equal(
    textOf(limitListing(limits, "key_1")),
    "LIMIT                VALUE      FROM               SPENT  REFILLS IN\n" +
      "requests per minute  5          organisation acme  -      -\n" +
      "budget               100/month  key ci             1.5    1h30m\n",
  );
});

Deno.test("projects: with what limits them, and how to make the first", () => {
  const words = { one: "project", command: "projects", path: "org/project" };
  const project = create(ScopeViewSchema, {
    path: "acme/chat",
    keys: 3,
    limits: { requestsPerMinute: 60n },
    spentMicro: 0n,
  });
  equal(
    textOf(scopeListing([project], words)),
    "PROJECT    KEYS  LIMITS  SPENT\nacme/chat  3     60 rpm  0\n",
  );
  equal(
    textOf(scopeListing([], words)),
    "No project yet. Create one with: heddle projects create org/project\n",
  );
});

Deno.test("prices: one basis each, and what it was", () => {
  deepEqual(priceOf({ prompt: 5n, completion: 7n, default: false }), {
    basis: { case: "tokens", value: { promptMicro: 5n, cachedMicro: 5n, completionMicro: 7n } },
  });
  equal(priceOf({ default: true }), undefined);
  for (const flags of [{}, { prompt: 1n }, { request: 1n, gpuSecond: 1n }, { cached: 1n }]) {
    throws(() => priceOf({ default: false, ...flags }), /want/);
  }
  const prices = [
    create(ModelPriceSchema, {
      model: "demo",
      price: { basis: { case: "tokens", value: { promptMicro: 500_000n, cachedMicro: 0n } } },
    }),
    create(ModelPriceSchema, {
      model: "big",
      price: { basis: { case: "gpuSecondMicro", value: 10_000n } },
    }),
  ];
  equal(
    textOf(priceListing(prices)),
    "MODEL  PRICE\n" +
      "demo   per million: 0.5 prompt, 0 cached, 0 completion\n" +
      "big    0.01 for each GPU-second\n",
  );
  equal(
    textOf(priceListing(prices), "csv"),
    'model,price\r\ndemo,"{""prompt_micro"":500000,""cached_micro"":0,""completion_micro"":0}"\r\n' +
      'big,"{""gpu_second_micro"":10000}"\r\n',
  );
});

Deno.test("usage: a column for each thing that is told apart, in every form", () => {
  deepEqual(parseBy("key, model"), ["key", "model"]);
  throws(() => parseBy("key,colour"), /want key, project.*it is "colour"/);
  const row = create(UsageRowSchema, {
    keyId: "key_1",
    keyName: "ci",
    model: "demo",
    requests: 12n,
    failures: 1n,
    promptTokens: 1_000n,
    completionTokens: 200n,
    cachedTokens: 800n,
    costMicro: 1_250_000n,
  });
  equal(
    textOf(usageListing([row], ["key", "model"])),
    "KEY    NAME  MODEL  REQUESTS  FAILED  PROMPT  CACHED  COMPLETION  UNITS\n" +
      "key_1  ci    demo   12        1       1000    800     200         1.25\n",
  );
  const [pool, none] = ["ib-a/h100-80g", ""].map((pool) => create(UsageRowSchema, { pool }));
  ok(pool !== undefined && none !== undefined);
  match(textOf(usageListing([pool, none], ["pool"])), /^POOL +REQ.*\nib-a\/h100-80g +0.*\nnone +0/);
  match(textOf(usageListing([pool], ["pool"]), "csv"), /ib-a\/h100-80g/);
  const day = create(UsageRowSchema, { fromS: 1_800_000_000n, requests: 1n });
  equal(
    textOf(usageListing([day], ["day"]), "wide"),
    "DAY                REQUESTS  FAILED  PROMPT  CACHED  COMPLETION  UNITS  REASONING  ESTIMATED  " +
      "WASTED\n" +
      "2027-01-15 08:00Z  1         0       0       0       0           0      0          0          0\n",
  );
  const [record] = JSON.parse(textOf(usageListing([row], ["key"]), "json"));
  deepEqual([record.key_id, record.cost_micro, record.from_s], ["key_1", 1_250_000, null]);
  equal(textOf(usageListing([row], ["key"]), "csv").split("\r\n").length, 3);
  equal(textOf(usageListing([row], ["key"]), "yaml").startsWith("- key_id: key_1\n"), true);
  equal(
    textOf(usageListing([], ["key"])),
    "Nothing was used in that time. Look further back with: heddle usage --since 30d\n",
  );
});
