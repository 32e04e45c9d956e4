/** A key with a limit, in an organisation with a budget, and a request that was made with it. */
import { create } from "@bufbuild/protobuf";
import { BudgetPeriod, ScopeKind, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import type { Site } from "../../control/site_fake.ts";

export async function makeUsedKey(site: Site): Promise<void> {
  const operator = await site.tenancy();
  await operator.createScope({ kind: ScopeKind.ORGANISATION, name: "acme" });
  await operator.createScope({ kind: ScopeKind.PROJECT, name: "chat", parent: "acme" });
  await operator.setLimits({
    scope: "acme",
    limits: { budgetMicro: 3_000_000n, budgetPeriod: BudgetPeriod.DAY },
  });
  await operator.createKey({
    project: "acme/chat",
    settings: { name: "ci" },
    limits: { requestsPerMinute: 60n },
  });
  const router = await site.router();
  await router.until(() => router.keys.size === 1);
  await router.client.recordUsage({
    router: "r/1",
    records: [...router.keys].map(([keyId, { projectId, scopeIds }]) =>
      create(UsageRecordSchema, {
        id: crypto.randomUUID(),
        keyId,
        projectId,
        scopeIds,
        model: "chat",
        outcome: "ok",
        usage: { promptTokens: 12n, completionTokens: 4n },
        costMicro: 1_500_000n,
      })
    ),
  });
  router.leave();
}
