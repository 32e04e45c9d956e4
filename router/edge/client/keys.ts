/** Who may call: everyone on loopback, or who shows a key of a file. Keys are kept as hashes only. */
import { createHash } from "node:crypto";
import { errorText, HeddleError } from "@heddle/proto/error";
import { ANONYMOUS, type Caller, plainCaller } from "../../core/request/caller.ts";
import { findCredential, type RequestHeaders } from "../../core/request/credential.ts";
import { next, refuse, type Step } from "../../core/request/outcome.ts";

export interface Keyring {
  authenticate(headers: RequestHeaders): Step<Caller>;
}

/** No key is wanted, and one that is shown is not looked at. */
export const OPEN_KEYRING: Keyring = { authenticate: () => next(ANONYMOUS) };

/** Longest key that is hashed; nobody's real key is longer. */
const KEY_CHARS_MAX = 512;

const UNKNOWN = refuse({
  reason: "unauthenticated",
  message: "The key is missing or not known: send it as Authorization: Bearer KEY",
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
  return { authenticate: (headers) => authenticate(callers, headers) };
}

function authenticate(
  callers: ReadonlyMap<string, Caller>,
  headers: RequestHeaders,
): Step<Caller> {
  const credential = findCredential(headers);
  if (credential.kind === "conflict") {
    return refuse({
      reason: "two_credentials",
      message: "The request shows two different keys: send one",
    });
  }
  if (credential.kind === "none" || credential.key.length > KEY_CHARS_MAX) return UNKNOWN;
  const caller = callers.get(hashOf(credential.key));
  return caller === undefined ? UNKNOWN : next(caller);
}

function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
