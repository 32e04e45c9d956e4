/** `ctl limits`: what limits a scope or key, and setting that. */
import { buildCommand } from "@stricli/core";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
} from "../../command.ts";
import { callTenancy, listTenancy } from "./client.ts";
import { limitListing } from "./key_show.ts";
import { formatLimits, LIMIT_FLAGS, type LimitFlags, limitsOf } from "./limit_flags.ts";

const HOLDER_PARAMETER = {
  kind: "tuple",
  parameters: [{
    parse: String,
    brief: "Path of an organisation, team or project, or name of a key",
    placeholder: "path|key",
  }],
} as const;

export const showLimits = buildCommand({
  docs: { brief: "Show what limits a scope or key, and where each limit comes from" },
  parameters: { flags: LIST_FLAGS, aliases: LIST_ALIASES, positional: HOLDER_PARAMETER },
  async func(this: CtlContext, flags: ListFlags, scope: string) {
    await listTenancy(this, flags, async (client) => {
      const { limits } = await client.getLimits({ scope }, { timeoutMs: CALL_TIMEOUT_MS });
      return limitListing(limits, scope);
    });
  },
});

interface SetFlags extends CommonFlags, LimitFlags {}

export const setLimits = buildCommand({
  docs: {
    brief: "Set limits of an organisation, team, project or key",
    fullDescription: "What is not said stays as it is; none takes a limit away.",
  },
  parameters: { flags: { ...COMMON_FLAGS, ...LIMIT_FLAGS }, positional: HOLDER_PARAMETER },
  async func(this: CtlContext, flags: SetFlags, scope: string) {
    const { context: _, ...limitFlags } = flags;
    const request = { scope, ...limitsOf(limitFlags) };
    const { before, after } = await callTenancy(
      this,
      flags,
      (client) => client.setLimits(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    const text = formatLimits(after) || "nothing";
    const was = formatLimits(before) || "nothing";
    this.io.out(`${scope} is limited to ${text}; it was ${was}\n`);
  },
});
