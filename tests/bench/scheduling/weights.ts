/** Heddle's policies: what each scorer counts. */
import { WEIGHTS_DEFAULT } from "../../../router/core/schedule/routing_profile.ts";
import type { ScorerName, Weights } from "../../../router/core/schedule/scorers.ts";

const ALL = WEIGHTS_DEFAULT.chat;
const NONE: Weights = {
  queue: 0,
  kv_cache: 0,
  in_flight: 0,
  reserved_tokens: 0,
  prefix: 0,
  session: 0,
  latency: 0,
};

/** Left out one at a time; sessions are not in this traffic. */
const LEFT_OUT: readonly ScorerName[] = [
  "queue",
  "kv_cache",
  "in_flight",
  "reserved_tokens",
  "prefix",
  "latency",
];

export const WEIGHTS: Readonly<Record<string, Weights>> = {
  "chance": NONE,
  "least request": { ...NONE, in_flight: 1 },
  heddle: ALL,
  ...Object.fromEntries(LEFT_OUT.map((name) => [`heddle without ${name}`, { ...ALL, [name]: 0 }])),
};
