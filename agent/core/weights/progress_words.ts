/** How far a fetch is, in a line for people. */
import type { FetchReport } from "./documents.ts";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** "fetching weights: 12.3 of 80.0 GiB (15 %), 230 MiB/s, 5 m left" */
export function progressWords(report: FetchReport): string {
  if (report.kind !== "progress") return "fetching weights";
  const { phase, done_bytes: done, total_bytes: total, note } = report;
  switch (phase) {
    case "listing":
      return "fetching weights: asking what there is";
    case "waiting":
      return `fetching weights: ${note}`;
    case "verifying":
      return `fetching weights: checking ${bytes(total)}`;
    case "waiting_to_retry":
      return `fetching weights: ${share(done, total)}; tries again: ${note}`;
    case "fetching": {
      const { bytes_per_second: rate, seconds_left: left } = report;
      const speed = rate === undefined ? "" : `, ${bytes(rate)}/s`;
      const time = left === undefined ? "" : `, ${duration(left)} left`;
      return `fetching weights: ${share(done, total)}${speed}${time}`;
    }
    default:
      return phase satisfies never;
  }
}

function share(done: number, total: number): string {
  const percent = total === 0 ? 0 : Math.floor(done / total * 100);
  return `${bytes(done)} of ${bytes(total)} (${percent} %)`;
}

function bytes(count: number): string {
  let value = count;
  let unit = 0;
  for (; value >= 1_024 && unit < UNITS.length - 1; unit++) value /= 1_024;
  return `${unit < 2 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} m`;
  return `${(seconds / 3_600).toFixed(1)} h`;
}
