/**
 * Media that a request names by a URL are fetched by an engine, from inside the fleet's network: a
 * caller could have it read what only the fleet can reach. So by default a request must bring its
 * media along as data: URLs, and the rest is an operator's decision.
 */
import type { JsonBody } from "../request/json_body.ts";

export interface MediaUrlPolicy {
  /** `data`: none are fetched. `hosts`: from `hosts` only. `public`: whatever names no private place. */
  readonly fetch: "data" | "hosts" | "public";
  /** Host names; ".example.org" stands for all below it. */
  readonly hosts: readonly string[];
}

export interface MediaRefusal {
  readonly message: string;
  readonly param: string;
}

/** Members that hold no media: a URL in them is fetched by nobody. */
const WITHOUT_MEDIA: ReadonlySet<string> = new Set([
  "functions",
  "metadata",
  "model",
  "response_format",
  "structured_outputs",
  "text",
  "tools",
]);

/** Parts of a conversation that quote URLs. */
const QUOTING: ReadonlySet<string> = new Set(["annotations", "citations", "url_citation"]);

const MEDIA_KEY = /^(?:audio|document|file|image|media|video)_url$/;

/** Judges the media that a request names; undefined when all of them may be fetched, or none are. */
export function refusedMedia(
  { value, text }: Pick<JsonBody, "value" | "text">,
  policy: MediaUrlPolicy,
): MediaRefusal | undefined {
  if (!mayNameMedia(text)) return undefined;
  for (const [key, member] of Object.entries(value)) {
    if (WITHOUT_MEDIA.has(key)) continue;
    for (const url of mediaUrls(member)) {
      const why = refusal(url, policy);
      if (why !== undefined) return { message: why, param: key };
    }
  }
  return undefined;
}

/** Whether JSON could hold such a name, also with a letter as an escape. Most does not. */
function mayNameMedia(json: string): boolean {
  return json.includes('_url"') || json.includes('"url"') || json.includes("\\u00");
}

/** URLs of media anywhere in `value`. Walks without recursion: depth is the caller's. */
function* mediaUrls(value: unknown): Generator<string> {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (Array.isArray(next)) {
      for (const item of next) if (typeof item === "object") open.push(item);
    }
    if (!isObject(next)) continue;
    // Anthropic's form: {"type": "url", "url": …}.
    if (next["type"] === "url" && typeof next["url"] === "string") yield next["url"];
    for (const [key, inner] of Object.entries(next)) {
      if (QUOTING.has(key)) continue;
      if (!MEDIA_KEY.test(key)) open.push(inner);
      else if (typeof inner === "string") yield inner;
      else if (isObject(inner) && typeof inner["url"] === "string") yield inner["url"];
      else open.push(inner);
    }
  }
}

function refusal(text: string, { fetch, hosts }: MediaUrlPolicy): string | undefined {
  if (text === "" || /^data:/i.test(text)) return undefined;
  if (fetch === "data") {
    return "Media must come with the request, as a data: URL: none are fetched here";
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return "Media are fetched over http and https only";
  }
  // Two parsers could take another part of it for the host.
  if (url.username !== "" || url.password !== "" || /[\\\s]/.test(text)) {
    return "A media URL must have no user name in it, no backslash and no space";
  }
  const host = url.hostname.replace(/\.$/, "").toLowerCase();
  const allowed = fetch === "hosts"
    ? hosts.some((name) => name.startsWith(".") ? host.endsWith(name) : host === name)
    : isPublicName(host);
  return allowed ? undefined : "Media from this host are not fetched here";
}

/** A name with a dot that is no address: addresses and bare names are places of one's own network. */
function isPublicName(host: string): boolean {
  if (!host.includes(".") || host.startsWith("[")) return false;
  return !/^[\d.]+$/.test(host) &&
    !/\.(?:local|localhost|internal|intranet|lan|home|corp|private|arpa)$/.test(host);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
