/** What may be said of scopes, keys, limits and prices. Everything else is refused with its reason. */
import { HeddleError } from "@heddle/proto/error";
import { short } from "./chain.ts";
import type { StoredKey, StoredLimits, StoredPrice } from "./stored.ts";

/** Names of scopes are parts of paths, labels of tables and values in logs. */
const SCOPE_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const MODEL_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._:/@+-]{0,198}[A-Za-z0-9])?$/;
const PATH = /^\/(?:[A-Za-z0-9_.-]+\/)*(?:[A-Za-z0-9_.-]+|\*)$/;
const PATH_CHARS_MAX = 200;
const KEY_NAME_CHARS_MAX = 100;
/** Items of one list: more is a mistake, and every router keeps them. */
const LIST_ITEMS_MAX = 1_000;
/** Beyond any hardware; sums of it still are whole numbers. */
const RATE_MAX = 1e12;
const SLOTS_MAX = 1e6;
/** A thousand million units, in millionths. */
const MICRO_MAX = 1e15;

export const BANDS = ["platinum", "gold", "silver", "bronze"] as const;
export const ROUTING_PROFILES = ["chat", "batch", "long-context"] as const;

/** What an operator says about a key. */
export type KeySettings = Pick<
  StoredKey,
  "name" | "models" | "paths" | "addresses" | "band" | "routingProfile" | "mayExplain"
>;

/** `action` completes "Cannot …" in what these throw, which is `invalid_input`. */
export function checkScopeName(action: string, name: string): void {
  if (SCOPE_NAME.test(name)) return;
  refuse(action, `the name "${short(name)}" is not 1 to 63 letters, digits and . _ - between them`);
}

export function checkRoutingProfile(action: string, profile: string): void {
  oneOf(action, "routing profile", profile, ROUTING_PROFILES);
}

export function checkBand(action: string, band: string): void {
  oneOf(action, "band", band, BANDS);
}

export function checkKeySettings(action: string, settings: KeySettings): void {
  const { name, models, paths, addresses, band, routingProfile } = settings;
  // deno-lint-ignore no-control-regex
  if (name.trim() === "" || /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)) {
    refuse(action, "a key needs a name, without line breaks and other control characters");
  }
  if ([...name].length > KEY_NAME_CHARS_MAX) {
    refuse(action, `the name is longer than ${KEY_NAME_CHARS_MAX} characters`);
  }
  checkModels(action, models);
  checkList(action, "path", paths, (path) => PATH.test(path) && path.length <= PATH_CHARS_MAX);
  checkList(action, "address", addresses, () => true);
  checkBand(action, band);
  checkRoutingProfile(action, routingProfile);
}

export function checkLimits(action: string, limits: StoredLimits): void {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests } = limits;
  atMost(action, "requests_per_minute", requestsPerMinute, RATE_MAX);
  atMost(action, "tokens_per_minute", tokensPerMinute, RATE_MAX);
  atMost(action, "concurrent_requests", concurrentRequests, SLOTS_MAX);
  atMost(action, "budget", limits.budgetMicro, MICRO_MAX);
  if ((limits.budgetMicro === undefined) !== (limits.budgetPeriod === undefined)) {
    refuse(action, "a budget needs an amount and a period, day or month");
  }
  checkModels(action, limits.models);
}

export function checkPrice(action: string, model: string, price: StoredPrice | undefined): void {
  if (!MODEL_NAME.test(model)) refuse(action, `"${short(model)}" is no name of a model`);
  if (price === undefined) return;
  const amounts = price.basis === "tokens"
    ? [price.promptMicro, price.cachedMicro, price.completionMicro]
    : [price.micro];
  for (const amount of amounts) atMost(action, "price", amount, MICRO_MAX);
}

function checkModels(action: string, models: readonly string[] | undefined): void {
  checkList(action, "model", models, (name) => MODEL_NAME.test(name));
}

function checkList(
  action: string,
  what: string,
  list: readonly string[] | undefined,
  good: (item: string) => boolean,
): void {
  if (list === undefined) return;
  if (list.length > LIST_ITEMS_MAX) refuse(action, `more than ${LIST_ITEMS_MAX} of one list`);
  const bad = list.find((item) => !good(item));
  if (bad !== undefined) refuse(action, `"${short(bad)}" is no ${what}`);
}

function oneOf(action: string, what: string, word: string, words: readonly string[]): void {
  if (word === "" || words.includes(word)) return;
  refuse(action, `there is no ${what} "${short(word)}", want ${words.join(", ")}`);
}

function atMost(action: string, what: string, value: number | undefined, max: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0 && value <= max)) return;
  refuse(action, `${what} ${value} is not a whole number from 0 to ${max}`);
}

/** Throws `invalid_input`. */
export function refuse(action: string, why: string): never {
  throw new HeddleError("invalid_input", `Cannot ${action}: ${why}`);
}
