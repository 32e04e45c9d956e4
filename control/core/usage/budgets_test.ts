import { equal } from "node:assert/strict";
import { Budgets } from "./budgets.ts";
import { Calendar } from "./periods.ts";

const EVENING = Date.parse("2026-11-30T22:00:00Z");
const NEXT_DAY = Date.parse("2026-12-01T01:00:00Z");
const HOUR_MS = 3_600_000;
const daily = { budgetMicro: 10, budgetPeriod: "day" } as const;
const monthly = { budgetMicro: 10, budgetPeriod: "month" } as const;

Deno.test("Budgets begins with what was stored, adds to it, and refills at midnight", () => {
  const budgets = new Budgets(new Calendar("UTC"));
  const [day, month] = budgets.periods(EVENING);
  budgets.seed([
    { scope: "a", period: day, micro: 6 },
    { scope: "a", period: month, micro: 9 },
  ]);
  equal(budgets.standing("a", daily, EVENING)?.exhausted, false);
  budgets.add([{ scope: "a", period: day, micro: 4 }, { scope: "a", period: month, micro: 4 }]);
  const spent = budgets.standing("a", daily, EVENING);
  equal(spent?.spentMicro, 10);
  equal(spent?.exhausted, true);
  equal(spent?.refillMs, 2 * HOUR_MS);
  equal(budgets.standing("a", monthly, EVENING)?.spentMicro, 13);
  equal(budgets.forget(EVENING), false);

  equal(budgets.standing("a", daily, NEXT_DAY)?.spentMicro, 0);
  equal(budgets.forget(NEXT_DAY), true);
  equal(budgets.forget(NEXT_DAY), false);
  equal(budgets.standing("a", monthly, NEXT_DAY)?.spentMicro, 0, "it was the last of the month");
});

Deno.test("Budgets forgets nothing while the clock is set back", () => {
  const budgets = new Budgets(new Calendar("UTC"));
  const [day] = budgets.periods(NEXT_DAY);
  budgets.seed([{ scope: "a", period: day, micro: 6 }]);
  equal(budgets.forget(EVENING), false);
  equal(budgets.standing("a", daily, NEXT_DAY)?.spentMicro, 6);
});

Deno.test("Budgets has nothing to say of who has no budget, and stops at once one of nothing", () => {
  const budgets = new Budgets(new Calendar("UTC"));
  equal(budgets.standing("a", undefined, EVENING), undefined);
  equal(budgets.standing("a", { requestsPerMinute: 5 }, EVENING), undefined);
  equal(budgets.standing("a", { ...daily, budgetMicro: 0 }, EVENING)?.exhausted, true);
});
