/**
 * Which web pages may call the API from a browser, and how they are told. Off unless origins are
 * listed: without CORS a browser lets no page read an answer.
 */
import type { RequestHeaders } from "../request/credential.ts";

export interface CorsPolicy {
  /** Origins as browsers write them; "*" is every one. Empty: off. */
  readonly origins: ReadonlySet<string>;
}

type Headers = Readonly<Record<string, string>>;

/** What a page may read of an answer besides its body. */
const EXPOSED = [
  "request-id",
  "retry-after",
  "x-heddle-dropped",
  "x-heddle-explain",
  "x-heddle-model",
  "x-heddle-replica",
  "x-heddle-store",
  "x-ratelimit-limit-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
  "x-request-id",
  "x-should-retry",
].join(", ");

/** How long a browser may remember a preflight; Chromium's own bound. */
const MAX_AGE_S = 7_200;

/** Clients of one kind send a dozen; a preflight with more is not one. */
const ASKED_MAX = 64;
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** What every answer says to the page that asked; empty for a page that may not. */
export function corsHeaders(policy: CorsPolicy, headers: RequestHeaders): Headers {
  const allowed = allowedOrigin(policy, headers);
  if (allowed === undefined) return policy.origins.size === 0 ? {} : { vary: "origin" };
  return {
    "access-control-allow-origin": allowed,
    "access-control-expose-headers": EXPOSED,
    vary: "origin",
  };
}

/** The answer to a preflight for one of `methods`; undefined where there is nothing to allow. */
export function preflight(
  policy: CorsPolicy,
  headers: RequestHeaders,
  methods: readonly string[],
): Headers | undefined {
  const method = headers["access-control-request-method"];
  if (allowedOrigin(policy, headers) === undefined || typeof method !== "string") return undefined;
  if (!methods.includes(method)) return undefined;
  const asked = headers["access-control-request-headers"];
  const names = typeof asked === "string"
    ? asked.toLowerCase().split(",").map((name) => name.trim()).filter((name) => TOKEN.test(name))
    : [];
  return {
    "access-control-allow-methods": methods.join(", "),
    // As asked: clients add headers with every release, and the key is what decides.
    "access-control-allow-headers": names.slice(0, ASKED_MAX).join(", "),
    "access-control-max-age": String(MAX_AGE_S),
  };
}

function allowedOrigin({ origins }: CorsPolicy, { origin }: RequestHeaders): string | undefined {
  if (typeof origin !== "string") return undefined;
  if (origins.has("*")) return "*";
  return origins.has(origin) ? origin : undefined;
}
