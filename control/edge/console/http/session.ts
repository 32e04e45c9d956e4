/**
 * Sessions of the console: a cookie that says who holds which token until when, signed by a key that
 * only control can derive. Nothing of it is kept, so a restart of control logs nobody out; and the
 * token is looked up anew with every request, so that one that was taken away counts no more.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { sha256, type TokenHolder, type Tokens } from "../../identity/operators.ts";

const COOKIE = "heddle_console";

/** A day at work, in seconds. */
const SESSION_S = 12 * 3_600;

/** Longer ones are nobody's token. */
const TOKEN_CHARS_MAX = 512;

export class Sessions {
  readonly #key: Uint8Array;
  readonly #tokens: () => Tokens;
  readonly #now: () => number;

  /** `secret` is control's private key; `now` is the wall clock in ms. */
  constructor(
    options: { readonly secret: string; readonly tokens: () => Tokens; readonly now: () => number },
  ) {
    const { secret, tokens, now } = options;
    this.#key = new Uint8Array(hkdfSync("sha256", secret, "", "heddle console session", 32));
    this.#tokens = tokens;
    this.#now = now;
  }

  /** The cookie for who shows this token; undefined when it is nobody's. */
  async open(token: string): Promise<string | undefined> {
    if (token === "" || token.length > TOKEN_CHARS_MAX) return undefined;
    const hash = await sha256(token);
    if (!this.#tokens().has(hash)) return undefined;
    const until = Math.floor(this.#now() / 1_000) + SESSION_S;
    const claim = `${hash}.${until}`;
    return cookieText(`${claim}.${this.#sign(claim)}`, SESSION_S);
  }

  /** Who sent these cookies; undefined for nobody, a session that has ended, or a token that has. */
  holder(cookies: string | undefined): TokenHolder | undefined {
    const value = cookieValue(cookies);
    const [hash = "", until = "", signature = ""] = value?.split(".") ?? [];
    const expected = new TextEncoder().encode(this.#sign(`${hash}.${until}`));
    const given = new TextEncoder().encode(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    if (this.#now() / 1_000 >= Number(until)) return undefined;
    return this.#tokens().get(hash);
  }

  #sign(claim: string): string {
    return createHmac("sha256", this.#key).update(claim).digest("hex");
  }
}

/** The cookie that ends a session. */
export const CLOSED_SESSION = cookieText("", 0);

// Sent over TLS alone: without it nobody logs in.
function cookieText(value: string, maxAgeS: number): string {
  return `${COOKIE}=${value}; Path=/console; HttpOnly; Secure; SameSite=Strict; Max-Age=${maxAgeS}`;
}

function cookieValue(cookies: string | undefined): string | undefined {
  for (const each of (cookies ?? "").split(";")) {
    const [name, value] = each.trim().split("=", 2);
    if (name === COOKIE) return value;
  }
  return undefined;
}
