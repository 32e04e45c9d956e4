/** `ctl keys rotate` and `revoke`: ends of a key's secrets. */
import { buildCommand } from "@stricli/core";
import { formatDurationMs } from "@heddle/common/duration";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { confirm } from "../../io.ts";
import {
  COMMON_FLAGS,
  type CtlContext,
  REASON_FLAG,
  type ReasonFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { callTenancy } from "./client.ts";
import { durationFlag, saySecret } from "./key_create.ts";
import { findKey, KEY_PARAMETER, keyWords } from "./key_show.ts";

interface RotateFlags extends SureFlags {
  readonly overlap?: number;
  readonly expires?: number;
}

/** Long enough for whoever holds it to change over in working hours. */
const OVERLAP_MS = 86_400_000;

export const rotateKey = buildCommand({
  docs: {
    brief: "Give a key a new secret, and show it once",
    fullDescription:
      "The old secret holds on for a day, or as --overlap says. Everything else of " +
      "the key stays: its limits, its name, what it has used.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...YES_FLAG,
      overlap: durationFlag("How long the old secret holds on; 24h when not said, 0s: not at all"),
      expires: durationFlag("How long the new secret holds; for ever when not said"),
    },
    positional: KEY_PARAMETER,
  },
  async func(this: CtlContext, flags: RotateFlags, name: string) {
    const overlapMs = flags.overlap ?? OVERLAP_MS;
    const found = await callTenancy(this, flags, (client) => findKey(client, name));
    if (overlapMs === 0) {
      const question = `End the secret of ${keyWords(found)} now? Who still uses it is refused.`;
      await confirm(this, flags, question);
    }
    const request = {
      key: found.id,
      overlapMs: BigInt(overlapMs),
      expiresInMs: BigInt(flags.expires ?? 0),
    };
    const { key, secret } = await callTenancy(
      this,
      flags,
      (client) => client.rotateKey(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    const old = overlapMs === 0 ? "ended" : `holds for ${formatDurationMs(overlapMs)} more`;
    saySecret(this, `Key ${key?.id} has a new secret, the old one ${old}`, secret);
  },
});

interface RevokeFlags extends SureFlags, ReasonFlags {}

export const revokeKey = buildCommand({
  docs: {
    brief: "End a key for good",
    fullDescription:
      "Every router that is connected refuses it within 2 s. What it used stays known.",
  },
  parameters: {
    flags: { ...COMMON_FLAGS, ...REASON_FLAG, ...YES_FLAG },
    positional: KEY_PARAMETER,
  },
  async func(this: CtlContext, flags: RevokeFlags, name: string) {
    const found = await callTenancy(this, flags, (client) => findKey(client, name));
    await confirm(this, flags, `Revoke ${keyWords(found)}, for good?`);
    const { key } = await callTenancy(
      this,
      flags,
      (client) =>
        client.revokeKey({ key: found.id, reason: flags.reason ?? "" }, {
          timeoutMs: CALL_TIMEOUT_MS,
        }),
    );
    this.io.out(`Revoked key ${key?.id}, "${key?.settings?.name}"\n`);
  },
});
