/**
 * Who may call: everyone on loopback, who shows a key of a file, or who shows a key that control
 * knows. Every way ends in one look-up by the key's hash and one decision on what was found. Keys
 * are kept as hashes only, and are nowhere in what is returned or thrown.
 */
import { createHash } from "node:crypto";
import { isApiKey } from "@heddle/common/api_key";
import { errorText, HeddleError } from "@heddle/proto/error";
import { ANONYMOUS, type Caller, plainCaller } from "../../core/request/caller.ts";
import type { CorsPolicy } from "../../core/policy/cors.ts";
import { foreignPage } from "../../core/policy/web_page.ts";
import { findCredential, type RequestHeaders } from "../../core/request/credential.ts";
import { next, refuse, type Step } from "../../core/request/outcome.ts";
import { authorise, type Whereabouts } from "../../core/tenancy/authorise.ts";
import type { Book } from "../../core/tenancy/book.ts";

export interface Keyring {
  authenticate(headers: RequestHeaders, from: Whereabouts): Step<Caller>;
}

/** How far the book of keys can be trusted. */
export interface BookTrust {
  /** Control is there, so what has expired it has removed. */
  connected(): boolean;
  /** Why no key is taken for a good one any more; undefined while they are. */
  stale(): string | undefined;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Longest key that is hashed; nobody's real key is longer. */
const KEY_CHARS_MAX = 512;

/** Longest origin that is repeated; host names end at 253. */
const ORIGIN_CHARS_MAX = 300;

const UNKNOWN = refuse({
  reason: "unauthenticated",
  message: "The key is missing or not known: send it as Authorization: Bearer KEY",
});

const CONFLICT = refuse({
  reason: "two_credentials",
  message: "The request shows two different keys: send one",
});

/** Reads a file with one key a line; `#` begins a comment. Throws `invalid_input`. */
export async function readKeyring(file: string): Promise<Keyring> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${errorText(error)}`, {
      cause: error,
    });
  }
  const callers = new Map(
    text.split("\n").map((line) => line.replace(/#.*$/, "").trim()).filter((key) => key !== "")
      .map((key) => {
        const hash = hashOf(key);
        return [hash, plainCaller(hash.slice(0, 12))] as const;
      }),
  );
  if (callers.size === 0) {
    throw new HeddleError("invalid_input", `Cannot use ${file}: it holds no key`);
  }
  return keyring((key) => {
    const caller = key.length > KEY_CHARS_MAX ? undefined : callers.get(hashOf(key));
    return caller === undefined ? UNKNOWN : next(caller);
  });
}

/** Demands a key that control knows. */
export function bookKeyring(book: Book, trust: BookTrust): Keyring {
  return keyring((key) => isApiKey(key) ? lookUp(book, trust, key) : UNKNOWN);
}

/**
 * Wants no key, and so takes nothing from web pages but those that `cors` allows. A key of Heddle's
 * own form is looked at all the same, so that its holder meets the limits that it has; anything else
 * that clients send for want of a key is not.
 */
export function openKeyring(book: Book, trust: BookTrust, cors: CorsPolicy): Keyring {
  return {
    authenticate(headers, from) {
      const credential = findCredential(headers);
      if (credential.kind === "conflict") return CONFLICT;
      if (credential.kind === "none" || !isApiKey(credential.key)) {
        const page = foreignPage(cors, headers);
        return page === undefined ? next(ANONYMOUS) : originNotAllowed(page);
      }
      return authorised(lookUp(book, trust, credential.key), from);
    },
  };
}

function originNotAllowed(page: string): Step<Caller> {
  return refuse({
    reason: "origin_not_allowed",
    message: `No key is wanted here, so web pages (this one: ${page.slice(0, ORIGIN_CHARS_MAX)}) ` +
      "may not use the API unless cors.origins in router.yaml lists their origin",
  });
}

function keyring(find: (key: string) => Step<Caller>): Keyring {
  return {
    authenticate(headers, from) {
      const credential = findCredential(headers);
      if (credential.kind === "conflict") return CONFLICT;
      return credential.kind === "none" ? UNKNOWN : authorised(find(credential.key), from);
    },
  };
}

function authorised(found: Step<Caller>, from: Whereabouts): Step<Caller> {
  return found.kind === "end" ? found : authorise(found.value, from);
}

function lookUp(book: Book, trust: BookTrust, key: string): Step<Caller> {
  const stale = book.informed ? trust.stale() : NOT_INFORMED;
  if (stale !== undefined) {
    return refuse({ reason: "keys_unconfirmed", message: stale, retryAfterS: STALE_RETRY_S });
  }
  const found = book.find(hashOf(key));
  if (found === undefined) return UNKNOWN;
  const { expiresAtS } = found;
  // Control removes a key when it expires, by its own clock; cut off from it, this one's counts.
  const expired = expiresAtS !== undefined && !trust.connected() &&
    trust.now() >= expiresAtS * 1_000;
  return expired ? UNKNOWN : next(found.caller);
}

const NOT_INFORMED = "This router has just started and has not heard of any keys yet";

/** Another router may well be connected, and a balancer finds it sooner than a client would wait. */
const STALE_RETRY_S = 5;

/** SHA-256 in hexadecimal, as the book has it. */
function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
