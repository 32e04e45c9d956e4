/** Durations and sizes as people write them in YAML: "5s", "20m", "1h30m", "80GiB". */
import { z } from "zod";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const UNIT_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const SIZE = /^(\d+(?:\.\d+)?)\s?([KMGT]i?B|B)$/;

/** Milliseconds, or undefined when `text` is no duration. */
export function parseDurationMs(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let totalMs = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(count) * (UNIT_MS[unit ?? ""] ?? 0);
  }
  return Math.round(totalMs);
}

/** Bytes, or undefined when `text` is no size. */
export function parseSizeBytes(text: string): number | undefined {
  const [, count, unit] = SIZE.exec(text) ?? [];
  const factor = UNIT_BYTES[unit ?? ""];
  return factor === undefined ? undefined : Math.round(Number(count) * factor);
}

/** "340ms", "12s", "4m12s", "3h5m", "2d4h": two units at most, for tables and messages. */
export function formatDurationMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return twoUnits(seconds, 60, ["m", "s"]);
  if (seconds < 86_400) return twoUnits(Math.round(seconds / 60), 60, ["h", "m"]);
  return twoUnits(Math.round(seconds / 3_600), 24, ["d", "h"]);
}

function twoUnits(small: number, perLarge: number, units: readonly [string, string]): string {
  const rest = small % perLarge;
  const large = `${Math.floor(small / perLarge)}${units[0]}`;
  return rest === 0 ? large : `${large}${rest}${units[1]}`;
}

/** A configuration value such as "20m"; the parsed value is still the text, see `parseDurationMs`. */
export function duration() {
  return z.string().refine((text) => parseDurationMs(text) !== undefined, {
    error: 'want a duration such as "5s", "20m" or "1h30m"',
  }).meta({ format: "duration" });
}

/** A configuration value such as "80GiB"; the parsed value is still the text, see `parseSizeBytes`. */
export function size() {
  return z.string().refine((text) => parseSizeBytes(text) !== undefined, {
    error: 'want a size such as "512MiB" or "80GiB"',
  }).meta({ format: "size" });
}
