/** What the holder of a key may know of it: what it may do, what of that is left, what it has used. */
import { errorText } from "@heddle/proto/error";
import type { EffectiveLimit, UsageRow } from "@heddle/proto/gen/tenancy";
import type { Limiter } from "../core/limits/limiter.ts";
import { leftOf } from "../core/limits/rate_headers.ts";
import type { ScopeState } from "../core/limits/scope_state.ts";
import type { Caller } from "../core/request/caller.ts";
import { next, refuse, type Step } from "../core/request/outcome.ts";
import type { OwnSubject as What } from "../core/request/route.ts";
import type { TenantKey } from "../core/tenancy/key.ts";
import type { ControlRpc } from "../edge/control/control_client.ts";

export interface OwnAccountSource {
  /** `target` is the request's, with its query. */
  tell(what: What, asking: Asking): Promise<Step<object>>;
}

interface Asking {
  readonly caller: Caller;
  readonly target: string;
}

export interface OwnAccountOptions {
  readonly limiter: Limiter;
  readonly router: string;
  readonly rpc: () => ControlRpc | undefined;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const DAY_MS = 86_400_000;
const SINCE_MS = 30 * DAY_MS;
const USAGE_MS_MAX = 5_000;
const MICRO = 1_000_000;

export class OwnAccount implements OwnAccountSource {
  readonly #options: OwnAccountOptions;

  constructor(options: OwnAccountOptions) {
    this.#options = options;
  }

  async tell(what: What, { caller, target }: Asking): Promise<Step<object>> {
    const { key } = caller;
    if (key === undefined) {
      return refuse({
        reason: "unauthenticated",
        message: "There are no limits and no usage without a key: send one of this fleet's keys",
      });
    }
    switch (what) {
      case "key":
        return next(describe(key));
      case "limits":
        return next({ object: "limits", key: describe(key), data: this.#limits(key) });
      case "usage":
        return await this.#usage(key, target);
    }
  }

  #limits(key: TenantKey): readonly OwnLimit[] {
    const now = this.#options.now();
    const found = this.#options.limiter.chain(key, now).flatMap((state) => limitsOf(state, now));
    const least = new Map<string, number>();
    for (const { name, value } of found) {
      least.set(name, Math.min(value, least.get(name) ?? Infinity));
    }
    return found.map((limit) => ({ ...limit, effective: limit.value === least.get(limit.name) }));
  }

  async #usage(key: TenantKey, target: string): Promise<Step<object>> {
    const sinceMs = sinceOf(target);
    if (sinceMs === undefined) {
      return refuse({
        reason: "invalid_request",
        message: '"since" must be hours or days, as in 12h or 7d',
        param: "since",
      });
    }
    const { rpc, router } = this.#options;
    try {
      const answer = await rpc()?.getOwnUsage({
        router,
        keyId: key.id,
        sinceMs: BigInt(sinceMs),
      }, { timeoutMs: USAGE_MS_MAX });
      if (answer === undefined) return unavailable("control is away");
      return next({
        object: "usage",
        key: describe(key),
        data: answer.rows.map(rowOf),
        limits: answer.limits.map(effectiveOf),
      });
    } catch (error) {
      return unavailable(errorText(error));
    }
  }
}

function unavailable(why: string) {
  return refuse({
    reason: "usage_unavailable",
    message: `The usage cannot be told now: ${why}`,
    retryAfterS: 5,
  });
}

function describe(key: TenantKey) {
  return {
    object: "key",
    id: key.id,
    name: key.name,
    prefixes: key.prefixes,
    project: key.project,
    organisation: key.organisation,
    models: key.models === undefined ? null : [...key.models],
    paths: key.paths ?? null,
  };
}

interface OwnLimit {
  readonly name: string;
  readonly value: number;
  readonly scope: string;
  readonly scope_name: string;
  readonly remaining: number;
  readonly full_in_seconds: number | null;
}

function limitsOf(state: ScopeState, now: number): OwnLimit[] {
  const { scope, slots } = state;
  const whose = { scope: scope.kind, scope_name: scope.name };
  const found: OwnLimit[] = [];
  for (const [dimension, name] of RATES) {
    const meter = state.meter(dimension);
    if (meter === undefined) continue;
    found.push({
      name,
      value: meter.limit,
      ...whose,
      remaining: leftOf(state, meter, now),
      full_in_seconds: seconds(meter.fullMs(now)),
    });
  }
  if (slots !== undefined) {
    const remaining = Math.max(0, slots.limit - slots.used);
    const name = "concurrent_requests";
    found.push({ name, value: slots.limit, ...whose, remaining, full_in_seconds: null });
  }
  const { budget } = scope;
  if (budget !== undefined) {
    found.push({
      name: "budget",
      value: budget.limitMicro / MICRO,
      ...whose,
      remaining: Math.max(0, budget.limitMicro - state.spentMicro(now)) / MICRO,
      full_in_seconds: seconds(budget.refillsAt - now),
    });
  }
  return found;
}

const RATES = [["requests", "requests_per_minute"], ["tokens", "tokens_per_minute"]] as const;

function seconds(ms: number): number | null {
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms / 1_000)) : null;
}

function rowOf(row: UsageRow) {
  return {
    from: row.fromS === undefined ? null : Number(row.fromS),
    model: row.model,
    requests: Number(row.requests),
    failures: Number(row.failures),
    prompt_tokens: Number(row.promptTokens),
    completion_tokens: Number(row.completionTokens),
    cached_tokens: Number(row.cachedTokens),
    reasoning_tokens: Number(row.reasoningTokens),
    estimated_requests: Number(row.estimated),
    units: Number(row.costMicro) / MICRO,
  };
}

function effectiveOf({ name, value, models, scopeName, spentMicro }: EffectiveLimit) {
  const budget = name === "budget";
  return {
    name,
    value: value === undefined ? null : Number(value) / (budget ? MICRO : 1),
    ...(models.length === 0 ? {} : { models }),
    from: scopeName,
    ...(spentMicro === undefined ? {} : { spent: Number(spentMicro) / MICRO }),
  };
}

function sinceOf(target: string): number | undefined {
  const text = /[?&]since=([^&#]*)/.exec(target)?.[1];
  if (text === undefined) return SINCE_MS;
  const [, count, unit] = /^(\d{1,4})(h|d)$/.exec(text) ?? [];
  if (count === undefined) return undefined;
  return Number(count) * (unit === "d" ? DAY_MS : DAY_MS / 24);
}
