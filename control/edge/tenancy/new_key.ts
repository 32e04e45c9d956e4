/** Makes ids and keys: the one place where their randomness comes from. */
import { Buffer } from "node:buffer";
import { apiKeyFrom, apiKeyHash, shownApiKey } from "@heddle/common/api_key";
import { createKey } from "../../core/tenancy/change.ts";
import type { KeySettings } from "../../core/tenancy/rules.ts";
import { refuse } from "../../core/tenancy/rules.ts";
import type { StoredLimits, StoredSecret } from "../../core/tenancy/stored.ts";
import type { Tenants } from "./tenants.ts";

/** Beyond this "never" is meant. */
const EXPIRY_MS_MAX = 100 * 365 * 86_400_000;

const PREFIXES = { organisation: "org", team: "team", project: "proj", key: "key" } as const;

/** An id that nothing else has, e.g. "proj_1f0c…". */
export function newId(kind: keyof typeof PREFIXES): string {
  return `${PREFIXES[kind]}_${
    Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString("hex")
  }`;
}

/** A secret to show once, and what is kept of it. */
export function newSecret(): { readonly text: string; readonly stored: StoredSecret } {
  const text = apiKeyFrom(crypto.getRandomValues(new Uint8Array(32)));
  return {
    text,
    stored: { sha256: Buffer.from(apiKeyHash(text)).toString("hex"), shown: shownApiKey(text) },
  };
}

/** Nothing for 0, which is never. Throws `invalid_input` for what is beyond a life. */
export function expiryOf(inMs: number, now: number): { readonly expiresAt?: number } {
  if (inMs > EXPIRY_MS_MAX) refuse("make a key", "it would expire in more than 100 years");
  return inMs === 0 ? {} : { expiresAt: now + inMs };
}

/** Makes a key, stored before this resolves. Throws as `createKey` does. */
export async function issueKey(
  tenants: Tenants,
  { project, settings, limits, expiresInMs, by }: {
    readonly project: string;
    readonly settings: KeySettings;
    readonly limits: StoredLimits;
    readonly expiresInMs: number;
    readonly by: string;
  },
): Promise<{ readonly id: string; readonly secret: string }> {
  const id = newId("key");
  const { text, stored } = newSecret();
  await tenants.change((all, now) => {
    const secret = { ...stored, ...expiryOf(expiresInMs, now) };
    return createKey(all, { id, project, settings, secret, limits }, { by, now });
  });
  return { id, secret: text };
}
