/** What a person reads of a search while it goes on, and at its end. */
import { visible } from "../table.ts";
import type { Level, Slo } from "./measured.ts";
import type { Found } from "./search.ts";

export const HEAD =
  "AT A TIME  GOOD/S  WITHIN  TTFT p50   p99 ms  TPOT p50   p99 ms  TOKENS/S  CACHED  FAILED";

/** One line, under HEAD. */
export function formatLevel(level: Level): string {
  const cells: readonly (readonly [string, number])[] = [
    [String(level.concurrency), 9],
    [level.goodput.toFixed(2), 8],
    [percent(level.within), 8],
    [number(level.ttftMs.p50), 10],
    [number(level.ttftMs.p99), 9],
    [number(level.tpotMs.p50, 1), 10],
    [number(level.tpotMs.p99, 1), 9],
    [level.completionTokensPerS.toFixed(0), 10],
    [level.cached === undefined ? "-" : percent(level.cached), 8],
    [String(level.failed), 8],
  ];
  return cells.map(([cell, width]) => cell.padStart(width)).join("");
}

/** The answer in words. */
export function formatFound({ best, stable, spread, open, levels }: Found, slo: Slo): string {
  const promise = `first token within ${slo.ttftMs} ms and ${slo.tpotMs} ms a token after it`;
  if (best === undefined) {
    const why = levels.at(0)?.error;
    return `\nNo request kept the promise (${promise}), even one at a time` +
      `${why === undefined ? "" : `: ${visible(why)}`}\n`;
  }
  const lines = [
    "",
    `Best at ${best.concurrency} at a time: ${
      best.goodput.toFixed(2)
    } requests a second within the ` +
    `promise (${promise}), ${percent(best.within)} of all`,
    stable
      ? `Repeated measurements agree within ${percent(spread)}`
      : `Not stable: repeated measurements differ by ${percent(spread)}. Is there other traffic?`,
    ...(open ? ["It was still rising at the largest load: raise --max to go on"] : []),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}

function number(value: number | undefined, digits = 0): string {
  return value === undefined ? "-" : value.toFixed(digits);
}
