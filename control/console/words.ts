/** Numbers, times and places as people read them. */
import type { AttachedItem } from "../edge/console/wire.ts";

/** 5 s, 3 min, 2 h, 4 d. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

export function gib(mib: number | undefined): string {
  return mib === undefined ? "?" : `${Math.round(mib / 1_024)}`;
}

/** At most three digits. */
export function figure(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return value.toFixed(value >= 10 ? 1 : 2);
}

/** 912 ms, 1.25 s, 14.0 s. */
export function latency(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${figure(ms / 1_000)} s`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Where an engine is that something else started: "on vast, host h-9, 8 GPUs". */
export function attachedWords({ provider, hostId, cards, nvlinks }: AttachedItem): string {
  return [
    `on ${provider || "a provider not told"}`,
    hostId === "" ? "host not told" : `host ${hostId}`,
    ...(cards === undefined ? [] : [plural(cards, "GPU")]),
    ...(nvlinks === undefined ? [] : [`${nvlinks.up}/${nvlinks.expected} NVLinks`]),
  ].join(", ");
}

/** In the reader's own time. */
export function clockTime(atMs: number): string {
  const date = new Date(atMs);
  const time = date.toLocaleTimeString(undefined, { hour12: false });
  const today = new Date().toDateString() === date.toDateString();
  return today ? time : `${date.toLocaleDateString()} ${time}`;
}

/** Names with numbers in them in the order of the numbers. */
export const byName: (a: string, b: string) => number = new Intl.Collator(undefined, {
  numeric: true,
}).compare;
