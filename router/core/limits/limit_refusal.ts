/** Tells a client which limit stopped it, whose it is, and when it refills. */
import type { Refusal, RefusalReason } from "../request/outcome.ts";
import type { LimitDetail } from "./limit_detail.ts";
import type { LimitName, Shortage } from "./limiter.ts";

/** Nobody knows when a request ends; this soon it is worth asking again. */
const SLOT_RETRY_S = 1;
/** Official clients take more than this for "do not". */
const RETRY_AFTER_S_MAX = 120;

const REASONS: Readonly<Record<LimitName, RefusalReason>> = {
  concurrent_requests: "concurrency_limited",
  requests_per_minute: "requests_limited",
  tokens_per_minute: "tokens_limited",
  budget: "budget_exhausted",
};

/** The refusal for what is missing; of several limits the one that takes longest is told. */
export function refusalOf(shortages: readonly Shortage[]): Refusal {
  const [first, ...others] = shortages;
  if (first === undefined) throw new Error("Nothing is missing");
  const worst = others.reduce((a, b) => weight(b) > weight(a) ? b : a, first);
  const detail = detailOf(worst);
  return worst.limit === "budget" ? budgetRefusal(worst, detail) : {
    reason: REASONS[worst.limit],
    message: `${words(worst.limit, detail)}: ${whenOf(worst, detail)}`,
    retryAfterS: worst.waitMs === undefined ? SLOT_RETRY_S : retryAfterS(worst.waitMs),
    limit: detail,
  };
}

/** Whole seconds from 1 to 120 after which what is missing is there. */
export function retryAfterS(waitMs: number): number {
  // What is off by rounding must not cost a second.
  return Math.min(Math.max(Math.ceil((waitMs - 1e-3) / 1_000), 1), RETRY_AFTER_S_MAX);
}

function budgetRefusal(shortage: Shortage, detail: LimitDetail): Refusal {
  const reserved = shortage.waitMs === 0;
  return {
    reason: reserved ? "budget_reserved" : "budget_exhausted",
    message: reserved
      ? `What is left of the budget of ${whose(detail)} is reserved by requests that are running`
      : `The budget of ${whose(detail)} is used up: ${whenOf(shortage, detail)}`,
    ...(reserved ? { retryAfterS: SLOT_RETRY_S } : { final: true as const }),
    limit: detail,
  };
}

function detailOf({ limit, state, waitMs }: Shortage): LimitDetail {
  const { scope, slots, requests, tokens } = state;
  const values: Readonly<Record<LimitName, number>> = {
    concurrent_requests: slots?.limit ?? 0,
    requests_per_minute: requests?.limit ?? 0,
    tokens_per_minute: tokens?.limit ?? 0,
    budget: (scope.budget?.limitMicro ?? 0) / 1_000_000,
  };
  return {
    name: limit,
    scope: scope.kind,
    scope_name: scope.name,
    value: values[limit],
    refills_in_seconds: waitMs === undefined || !Number.isFinite(waitMs)
      ? null
      : Math.max(0, Math.ceil((waitMs - 1e-3) / 1_000)),
  };
}

function words(limit: LimitName, detail: LimitDetail): string {
  const { value } = detail;
  switch (limit) {
    case "concurrent_requests":
      return `The limit of ${value} requests at one time of ${whose(detail)} is reached`;
    case "requests_per_minute":
      return `The limit of ${value} requests per minute of ${whose(detail)} is reached`;
    case "tokens_per_minute":
      return `The limit of ${value} tokens per minute of ${whose(detail)} is reached`;
    case "budget":
      return `The budget of ${whose(detail)} is used up`;
  }
}

function whose({ scope, scope_name: name }: LimitDetail): string {
  return name === "" ? `this ${scope}` : `the ${scope} "${name}"`;
}

function whenOf({ waitMs, limit }: Shortage, { refills_in_seconds: seconds }: LimitDetail): string {
  if (waitMs === undefined) return "a place is free when one of them ends";
  if (seconds === null) return limit === "budget" ? "it does not refill" : "it lets nothing pass";
  return limit === "budget"
    ? `it refills in ${span(seconds)}`
    : `there is room in ${span(seconds)}`;
}

/** "5 h 3 min", "12 s". */
function span(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function weight({ limit, waitMs }: Shortage): number {
  // A budget that is used up is what no waiting helps against.
  if (limit === "budget" && waitMs !== 0) return Infinity;
  return waitMs ?? SLOT_RETRY_S * 1_000;
}
