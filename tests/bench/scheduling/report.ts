/** What a shape of traffic came to, policy by policy. */
import { say } from "../../../tools/say.ts";
import { percentile } from "../../scheduling/traffic.ts";
import type { Measured } from "./drive.ts";
import type { Shape } from "./shapes.ts";

/** What a person who waits is content with. */
const SLO_FIRST_MS = 500;
const SLO_TOKEN_MS = 100;
const COLUMNS = [
  ["", 30],
  ["TTFT p50", 10],
  ["p90", 7],
  ["p99", 7],
  ["×p90", 7],
  ["ITL p50", 9],
  ["p99", 7],
  ["goodput/s", 11],
  ["×", 6],
  ["cached", 8],
  ["failed", 8],
] as const;

/** Ratios are to the best of the others: below 1 of TTFT and above 1 of goodput is better. */
export function print(
  { name, says }: Shape,
  rows: readonly (readonly [string, readonly Measured[]])[],
  seconds: number,
): void {
  say(`\n${name}: ${says}; ${rows[0]?.[1].length ?? 0} requests in ${seconds} s`);
  say(row(COLUMNS.map(([title]) => title)));
  const summaries = rows.map(([policy, found]) => ({ policy, ...summary(found, seconds) }));
  const peers = summaries.filter(({ policy }) => !policy.startsWith("heddle"));
  const bestP90 = Math.min(...peers.map(({ p90 }) => p90));
  const bestGoodput = Math.max(...peers.map(({ goodput }) => goodput));
  for (const each of summaries) {
    say(row([
      each.policy,
      each.p50.toFixed(0),
      each.p90.toFixed(0),
      each.p99.toFixed(0),
      (each.p90 / bestP90).toFixed(2),
      each.tokenP50.toFixed(0),
      each.tokenP99.toFixed(0),
      each.goodput.toFixed(2),
      (each.goodput / bestGoodput).toFixed(2),
      `${(each.cached * 100).toFixed(0)} %`,
      String(each.failed),
    ]));
  }
}

function summary(found: readonly Measured[], seconds: number) {
  const served = found.filter(({ ok }) => ok);
  const first = served.map(({ firstMs }) => firstMs);
  const token = served.map(({ tokenMs }) => tokenMs);
  const good = served.filter(({ firstMs, tokenMs }) =>
    firstMs <= SLO_FIRST_MS && tokenMs <= SLO_TOKEN_MS
  );
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  return {
    p50: percentile(first, 0.5),
    p90: percentile(first, 0.9),
    p99: percentile(first, 0.99),
    tokenP50: percentile(token, 0.5),
    tokenP99: percentile(token, 0.99),
    goodput: good.length / seconds,
    cached: sum(served.map(({ cachedTokens }) => cachedTokens)) /
      Math.max(1, sum(served.map(({ promptTokens }) => promptTokens))),
    failed: found.length - served.length,
  };
}

function row(texts: readonly string[]): string {
  return texts.map((text, index) =>
    index === 0 ? text.padEnd(COLUMNS[0][1]) : text.padStart(COLUMNS[index]?.[1] ?? 0)
  ).join("").trimEnd();
}
