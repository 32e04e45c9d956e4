/** `ctl keys create` and `update`. A key is shown once, when it is made. */
import { buildCommand } from "@stricli/core";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { parseDurationMs } from "@heddle/common/duration";
import type { KeySettingsSchema } from "@heddle/proto/gen/tenancy";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";
import { callTenancy } from "./client.ts";
import { findKey, KEY_PARAMETER } from "./key_show.ts";
import { LIMIT_FLAGS, type LimitFlags, limitsOf, words } from "./limit_flags.ts";

interface SettingFlags extends CommonFlags {
  readonly models?: string;
  readonly paths?: string;
  readonly addresses?: string;
  readonly band?: string;
  readonly routingProfile?: string;
  readonly mayExplain?: boolean;
}

interface CreateFlags extends SettingFlags, Omit<LimitFlags, "models"> {
  readonly project: string;
  readonly expires?: number;
}

interface UpdateFlags extends SettingFlags {
  readonly name?: string;
}

const flag = (placeholder: string, brief: string) =>
  ({ kind: "parsed", parse: String, optional: true, placeholder, brief }) as const;

const SETTING_FLAGS = {
  models: flag("names", "Models that it may use, separated by commas, or all"),
  paths: flag("paths", "Paths that it may use, e.g. /v1/chat/completions or /v1/*, or all"),
  addresses: flag("prefixes", "Addresses that it may be used from, e.g. 10.0.0.0/8, or all"),
  band: flag("band", "Highest band of its requests: platinum, gold, silver or bronze"),
  routingProfile: flag("profile", "chat, batch or long-context, for all its requests"),
  mayExplain: {
    kind: "boolean",
    optional: true,
    brief: "May ask why a request went where it went",
  },
} as const;

/** A duration flag in ms. */
export const durationFlag = (brief: string) =>
  ({
    kind: "parsed",
    parse: (text: string) => {
      const ms = parseDurationMs(text);
      if (ms === undefined) throw new SyntaxError(`want a duration such as 24h, it is "${text}"`);
      return ms;
    },
    optional: true,
    placeholder: "duration",
    brief,
  }) as const;

const { rpm, tpm, concurrent, budget } = LIMIT_FLAGS;

export const createKey = buildCommand({
  docs: {
    brief: "Make a key, and show it once",
    fullDescription: "Control keeps only its hash: what is not written down now is lost.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      project: {
        kind: "parsed",
        parse: String,
        placeholder: "path",
        brief: "Project that it is in, e.g. acme/chat",
      },
      expires: durationFlag("How long it holds, e.g. 90d; for ever when not said"),
      ...SETTING_FLAGS,
      rpm,
      tpm,
      concurrent,
      budget,
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "What it is for", placeholder: "name" }],
    },
  },
  async func(this: CtlContext, flags: CreateFlags, name: string) {
    const { models: _, ...limitFlags } = flags;
    const request = {
      project: flags.project,
      settings: settingsOf({ name }, flags),
      limits: limitsOf(limitFlags).limits,
      expiresInMs: BigInt(flags.expires ?? 0),
    };
    const { key, secret } = await callTenancy(
      this,
      flags,
      (client) => client.createKey(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    saySecret(this, `Made key ${key?.id} in ${key?.projectPath}`, secret);
  },
});

export const updateKey = buildCommand({
  docs: {
    brief: "Change what a key may do",
    fullDescription: "What is not said stays. Its limits are changed with: heddle limits set",
  },
  parameters: {
    flags: { ...COMMON_FLAGS, name: flag("name", "What it is for"), ...SETTING_FLAGS },
    positional: KEY_PARAMETER,
  },
  async func(this: CtlContext, flags: UpdateFlags, name: string) {
    const options = { timeoutMs: CALL_TIMEOUT_MS };
    const key = await callTenancy(this, flags, async (client) => {
      const found = await findKey(client, name);
      const { $typeName: _, $unknown: _unknown, ...before } = found.settings ?? { name: "" };
      const settings = settingsOf({ ...before, name: flags.name ?? before.name }, flags);
      return (await client.updateKey({ key: found.id, settings }, options)).key;
    });
    this.io.out(`Changed key ${key?.id}; look at it with: heddle keys show ${key?.id}\n`);
  },
});

/** The secret goes where it can be piped to; the rest is for the person. */
export function saySecret(context: CtlContext, what: string, secret: string): void {
  context.io.err(`${what}. This is the only time that it is shown:\n`);
  context.io.out(`${secret}\n`);
}

type Settings = MessageInitShape<typeof KeySettingsSchema>;

function settingsOf(before: Exclude<Settings, { $typeName: string }>, flags: SettingFlags) {
  const { models, paths, addresses, band, routingProfile, mayExplain } = flags;
  const settings = { ...before };
  for (const [name, text] of Object.entries({ models, paths, addresses })) {
    if (text === undefined) continue;
    if (name !== "models" && name !== "paths" && name !== "addresses") continue;
    if (text === "all") delete settings[name];
    else settings[name] = { items: words(text) };
  }
  if (band !== undefined) settings.band = band;
  if (routingProfile !== undefined) settings.routingProfile = routingProfile;
  if (mayExplain !== undefined) settings.mayExplain = mayExplain;
  return settings;
}
