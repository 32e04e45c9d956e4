/** Amounts of units as people write them: "0.5", "100/month". Inside they are millionths. */
import { BudgetPeriod } from "@heddle/proto/gen/tenancy";

const MICRO_DIGITS = 6;
const MICRO = 1_000_000n;

/** Millionths of a unit. Throws SyntaxError. */
export function parseUnits(text: string): bigint {
  const [, whole, fraction = ""] = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === undefined) {
    throw new SyntaxError(`want a number of units with 6 decimals at most, it is "${text}"`);
  }
  return BigInt(whole) * MICRO + BigInt(fraction.padEnd(MICRO_DIGITS, "0"));
}

/** "0.5", "1200". */
export function formatUnits(micro: bigint): string {
  const sign = micro < 0n ? "-" : "";
  const amount = micro < 0n ? -micro : micro;
  const fraction = String(amount % MICRO).padStart(MICRO_DIGITS, "0").replace(/0+$/, "");
  return `${sign}${amount / MICRO}${fraction === "" ? "" : `.${fraction}`}`;
}

/** "100/month", "5/day". Throws SyntaxError. */
export function parseBudget(text: string): { budgetMicro: bigint; budgetPeriod: BudgetPeriod } {
  const [, amount, period] = /^(.+)\/(day|month)$/.exec(text) ?? [];
  if (amount === undefined) throw new SyntaxError(`want units/day or units/month, it is "${text}"`);
  const budgetPeriod = period === "day" ? BudgetPeriod.DAY : BudgetPeriod.MONTH;
  return { budgetMicro: parseUnits(amount), budgetPeriod };
}

export function formatBudget(micro: bigint, period: BudgetPeriod): string {
  return `${formatUnits(micro)}/${period === BudgetPeriod.DAY ? "day" : "month"}`;
}

/** "2026-11-29 22:01Z"; empty for no time. */
export function formatSeconds(seconds: bigint | undefined): string {
  if (seconds === undefined) return "";
  const date = new Date(Number(seconds) * 1_000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  return `${date.toISOString().slice(0, 16).replace("T", " ")}Z`;
}
