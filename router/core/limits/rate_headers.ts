/** The `x-ratelimit-*` headers, in the form that OpenAI's clients read. */
import type { Meter } from "./meter.ts";
import type { ScopeState } from "./scope_state.ts";

/** Of all limits on the chain, the one that is nearest to its end. */
export function rateHeaders(
  chain: readonly ScopeState[],
  now: number,
): Readonly<Record<string, string>> {
  return {
    ...headersOf("requests", tightest(chain, "requests", now), now),
    ...headersOf("tokens", tightest(chain, "tokens", now), now),
  };
}

interface Tight {
  readonly meter: Meter;
  readonly left: number;
}

function tightest(
  chain: readonly ScopeState[],
  dimension: "requests" | "tokens",
  now: number,
): Tight | undefined {
  let found: Tight | undefined;
  for (const state of chain) {
    const meter = state.meter(dimension);
    if (meter === undefined) continue;
    const left = leftOf(state, meter, now);
    const nearer = found === undefined || left < found.left ||
      left === found.left && meter.limit < found.meter.limit;
    if (nearer) found = { meter, left };
  }
  return found;
}

/** Before control has said what of a limit is this router's, all of it is as good a guess as any. */
export function leftOf({ granted }: ScopeState, meter: Meter, now: number): number {
  return !granted && meter.share === 0 ? meter.limit : meter.left(now);
}

function headersOf(unit: string, tight: Tight | undefined, now: number) {
  if (tight === undefined) return {};
  return {
    [`x-ratelimit-limit-${unit}`]: String(tight.meter.limit),
    [`x-ratelimit-remaining-${unit}`]: String(tight.left),
    [`x-ratelimit-reset-${unit}`]: durationText(tight.meter.fullMs(now)),
  };
}

/** "12ms", "1.5s", "6m0s", "1h2m3s". */
export function durationText(ms: number): string {
  if (!Number.isFinite(ms)) return "24h0m0s";
  const whole = Math.ceil(ms - 1e-6);
  if (whole < 1_000) return `${whole}ms`;
  if (whole < 60_000) return `${whole / 1_000}s`;
  const seconds = Math.ceil(whole / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds % 3_600 / 60)];
  return `${hours > 0 ? `${hours}h` : ""}${minutes}m${seconds % 60}s`;
}
