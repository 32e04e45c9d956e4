/**
 * Whether a request comes from a web page that may not use the API. CORS keeps such a page from
 * reading an answer, not from sending: a browser sends JSON as text/plain to any address without
 * asking first, also to this machine's own. A key stops that, since no page can add one unasked;
 * where none is wanted, what browsers say of where a request comes from has to.
 */
import { isLoopback } from "@heddle/common/address";
import type { RequestHeaders } from "../request/credential.ts";
import type { CorsPolicy } from "./cors.ts";

/** Where from a browser sends what no page of another origin has made it send. */
const OWN_SITES: ReadonlySet<string> = new Set(["same-origin", "none"]);

/** The origin to be told of, as the browser says it; undefined for what may pass. */
export function foreignPage({ origins }: CorsPolicy, headers: RequestHeaders): string | undefined {
  const said = valuesOf(headers["origin"]);
  if (said.length > 0) {
    // Of several all must pass: which of them counts would be a guess.
    return said.find((origin) => !origins.has(origin) && !ownOrigin(origin, headers));
  }
  const sites = valuesOf(headers["sec-fetch-site"]);
  return sites.every((site) => OWN_SITES.has(site)) ? undefined : "of another site";
}

/**
 * The origin that this listener itself is. By name it must be this machine: a page of another name
 * that now resolves to this machine has the same host in both headers.
 */
function ownOrigin(origin: string, headers: RequestHeaders): boolean {
  const [host, ...others] = valuesOf(headers["host"]);
  if (host === undefined || others.length > 0 || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  const here = url.protocol === "http:" || url.protocol === "https:";
  return here && isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1")) &&
    URL.canParse(`${url.protocol}//${host}`) &&
    new URL(`${url.protocol}//${host}`).host === url.host;
}

function valuesOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
