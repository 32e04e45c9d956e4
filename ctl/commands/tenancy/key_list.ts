/** `ctl keys list`: keys, where they are, and whether they are used. Never the keys themselves. */
import { buildCommand } from "@stricli/core";
import { type KeyView, KeyViewSchema } from "@heddle/proto/gen/tenancy";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { type CtlContext, LIST_ALIASES, LIST_FLAGS, type ListFlags } from "../../command.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import type { Listing } from "../../table.ts";
import { listTenancy, type TenancyClient } from "./client.ts";
import { formatLimits } from "./limit_flags.ts";
import { IN_FLAG } from "./scopes.ts";
import { formatSeconds } from "./units.ts";

interface KeyListFlags extends ListFlags {
  readonly in?: string;
  readonly all: boolean;
}

export const listKeys = buildCommand({
  docs: { brief: "List keys" },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      ...IN_FLAG,
      all: { kind: "boolean", default: false, brief: "Also revoked and expired ones" },
    },
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: KeyListFlags) {
    const request = { in: flags.in ?? "", all: flags.all };
    await listTenancy(this, flags, async (client) => keyListing(await fetchKeys(client, request)));
  },
});

/** All pages, the oldest key first. */
async function fetchKeys(
  client: TenancyClient,
  request: { readonly in: string; readonly all: boolean },
): Promise<readonly KeyView[]> {
  const all: KeyView[] = [];
  for (let more = true; more;) {
    const after = all.at(-1)?.id ?? "";
    const page = await client.listKeys({ ...request, after }, { timeoutMs: CALL_TIMEOUT_MS });
    all.push(...page.keys);
    more = page.more && page.keys.length > 0;
  }
  return all.sort((a, b) => Number(a.createdAtS - b.createdAtS));
}

/** The table of keys. */
export function keyListing(keys: readonly KeyView[]): Listing<KeyView> {
  return {
    rows: keys,
    empty: "No key yet. Make one with: heddle keys create NAME --project org/project",
    record: (key) => toRecord(KeyViewSchema, key),
    fields: fieldsOf(KeyViewSchema),
    columns: [
      { title: "KEY", cell: (key) => key.id },
      { title: "NAME", cell: (key) => key.settings?.name ?? "" },
      { title: "SHOWN", cell: (key) => key.secrets.map(({ prefix }) => prefix).join(" ") },
      { title: "PROJECT", cell: (key) => key.projectPath },
      { title: "STATE", cell: (key) => key.state },
      { title: "EXPIRES", cell: expiryOf },
      { title: "LAST USED", cell: (key) => formatSeconds(key.lastUsedS) },
      { title: "LIMITS", cell: (key) => formatLimits(key.limits), wide: true },
      { title: "BAND", cell: (key) => key.settings?.band ?? "", wide: true },
      { title: "CREATED", cell: (key) => formatSeconds(key.createdAtS), wide: true },
      { title: "BY", cell: (key) => key.createdBy, wide: true },
    ],
  };
}

/** Of its newest secret. */
export function expiryOf(key: KeyView): string {
  return formatSeconds(key.secrets.at(-1)?.expiresAtS);
}
