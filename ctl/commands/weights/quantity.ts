/** Bytes and times as the commands about weights show them. */
import { formatDurationMs } from "@heddle/common/duration";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** "131.4 GiB" */
export function formatBytes(count: bigint | number): string {
  let value = Number(count);
  let unit = 0;
  for (; value >= 1_024 && unit < UNITS.length - 1; unit++) value /= 1_024;
  return `${unit < 2 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export interface Share {
  readonly done: bigint;
  readonly total: bigint;
  readonly rate: bigint | undefined;
  readonly secondsLeft: bigint | undefined;
}

/** "12.3 of 80.0 GiB (15 %), 230.0 MiB/s, 5m left"; with a bar when a person watches. */
export function formatShare({ done, total, rate, secondsLeft }: Share, bar: boolean): string {
  const share = total === 0n ? 0 : Number(done) / Number(total);
  const speed = rate === undefined ? "" : `, ${formatBytes(rate)}/s`;
  const left = secondsLeft === undefined
    ? ""
    : `, ${formatDurationMs(Number(secondsLeft) * 1_000)} left`;
  const words = `${formatBytes(done)} of ${formatBytes(total)} (${Math.floor(share * 100)} %)`;
  return `${bar ? `${progressBar(share)} ` : ""}${words}${speed}${left}`;
}

const BAR_WIDTH = 20;

function progressBar(share: number): string {
  const full = Math.floor(Math.min(1, Math.max(0, share)) * BAR_WIDTH);
  return `[${"#".repeat(full)}${".".repeat(BAR_WIDTH - full)}]`;
}
