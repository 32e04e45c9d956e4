/** `ctl keys show KEY`: what a key may do, and where each of its limits comes from. */
import { buildCommand } from "@stricli/core";
import { formatDurationMs } from "@heddle/common/duration";
import {
  type EffectiveLimit,
  EffectiveLimitSchema,
  type KeyView,
  KeyViewSchema,
  ScopeKind,
} from "@heddle/proto/gen/tenancy";
import { HeddleError } from "@heddle/proto/error";
import { stringify } from "yaml";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  FORM_ALIASES,
  FORM_FLAGS,
  type FormFlags,
  outputOf,
} from "../../command.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import { type Listing, visible, writeListing } from "../../table.ts";
import { callTenancy, type TenancyClient } from "./client.ts";
import { formatBudget, formatSeconds, formatUnits } from "./units.ts";

interface ShowFlags extends CommonFlags, FormFlags {}

/** The one positional parameter of commands about a key. */
export const KEY_PARAMETER = {
  kind: "tuple",
  parameters: [{
    parse: String,
    brief: "Name of the key, also as project/name, its id, or what is shown of it",
    placeholder: "key",
  }],
} as const;

export const showKey = buildCommand({
  docs: { brief: "Show what a key may do, and where each of its limits comes from" },
  parameters: {
    flags: { ...COMMON_FLAGS, ...FORM_FLAGS },
    aliases: FORM_ALIASES,
    positional: KEY_PARAMETER,
  },
  async func(this: CtlContext, flags: ShowFlags, name: string) {
    const { key, limits } = await callTenancy(this, flags, async (client) => {
      const options = { timeoutMs: CALL_TIMEOUT_MS };
      const key = await findKey(client, name);
      return { key, limits: (await client.getLimits({ scope: key.id }, options)).limits };
    });
    const record = toRecord(KeyViewSchema, key);
    writeHolder(this, flags, { holder: key.id, record, text: formatKey(key), limits });
  },
});

/** The key of that name. Throws `not_found`. */
export async function findKey(client: TenancyClient, name: string): Promise<KeyView> {
  const { keys: [key] } = await client.listKeys({ keys: [name] }, { timeoutMs: CALL_TIMEOUT_MS });
  if (key !== undefined) return key;
  throw new HeddleError("not_found", `There is no key "${name}". List them with: heddle keys list`);
}

/** 'key "ci" in acme/chat, key_1' */
export function keyWords({ id, settings, projectPath }: KeyView): string {
  return `key "${visible(settings?.name ?? "")}" in ${projectPath}, ${id}`;
}

/** What is limited, as a record and in words, and then its effective limits; as CSV these alone. */
export function writeHolder(
  { io }: CtlContext,
  flags: FormFlags,
  { record, text, limits, holder }: {
    /** What names it on a command line. */
    readonly holder: string;
    readonly record: Readonly<Record<string, unknown>>;
    readonly text: string;
    readonly limits: readonly EffectiveLimit[];
  },
): void {
  const output = outputOf(flags);
  if (output === "csv") return writeListing(io, limitListing(limits, holder), output);
  if (output === "json" || output === "yaml") {
    const effective = limits.map((limit) => toRecord(EffectiveLimitSchema, limit));
    const all = { ...record, effective_limits: effective };
    io.out(output === "json" ? `${JSON.stringify(all, null, 2)}\n` : stringify(all));
    return;
  }
  io.out(`${text}\n`);
  writeListing(io, limitListing(limits, holder), output);
}

/** A key in words, a line for each thing that was said of it. */
export function formatKey(key: KeyView): string {
  const { settings } = key;
  const listed = (list: { readonly items: readonly string[] } | undefined, otherwise: string) =>
    list === undefined ? otherwise : list.items.join(", ") || "none";
  const lines: (readonly [string, string])[] = [
    ["Key", key.id],
    ["Name", settings?.name ?? ""],
    ["Project", key.projectPath],
    ["State", key.state],
    ...key.secrets.map(({ prefix, expiresAtS }) =>
      [
        "Secret",
        `${prefix}… ${expiresAtS === undefined ? "" : `until ${formatSeconds(expiresAtS)}`}`.trim(),
      ] as const
    ),
    ["Models", listed(settings?.models, "all that its scopes allow")],
    ["Paths", listed(settings?.paths, "all")],
    ["Addresses", listed(settings?.addresses, "all")],
    ["Band", settings?.band || "its project's, or the router's own"],
    ["Routing", settings?.routingProfile || "its project's, or the model's own"],
    ["May explain", settings?.mayExplain === true ? "yes" : "no"],
    ["Created", `${formatSeconds(key.createdAtS)} by ${key.createdBy}`],
    ["Last used", formatSeconds(key.lastUsedS) || "never"],
    ...(key.revokedAtS === undefined ? [] : [["Revoked", formatSeconds(key.revokedAtS)] as const]),
  ];
  return formatFacts(lines);
}

/** A line for each title, the texts below each other. */
export function formatFacts(facts: readonly (readonly [string, string])[]): string {
  const width = Math.max(...facts.map(([title]) => title.length)) + 2;
  return facts.map(([title, text]) => `${`${title}:`.padEnd(width)} ${visible(text)}\n`).join("");
}

/** The table of effective limits of what is called `holder`. */
export function limitListing(
  limits: readonly EffectiveLimit[],
  holder: string,
): Listing<EffectiveLimit> {
  return {
    rows: limits,
    empty: `Nothing limits ${visible(holder)}. Set a limit with: heddle limits set ${
      visible(holder)
    } --rpm 60; --help has the others`,
    record: (limit) => toRecord(EffectiveLimitSchema, limit),
    fields: fieldsOf(EffectiveLimitSchema),
    columns: [
      { title: "LIMIT", cell: (limit) => limit.name.replaceAll("_", " ") },
      { title: "VALUE", cell: valueOf },
      { title: "FROM", cell: (limit) => `${kindWord(limit.scopeKind)} ${limit.scopeName}` },
      {
        title: "SPENT",
        cell: ({ spentMicro }) => spentMicro === undefined ? "" : formatUnits(spentMicro),
      },
      {
        title: "REFILLS IN",
        cell: ({ refillMs }) => refillMs === undefined ? "" : formatDurationMs(Number(refillMs)),
      },
    ],
  };
}

function valueOf({ name, value = 0n, models, period }: EffectiveLimit): string {
  if (name === "models") return models.join(", ") || "none";
  return name === "budget" ? formatBudget(value, period) : String(value);
}

function kindWord(kind: ScopeKind): string {
  return ScopeKind[kind]?.toLowerCase() ?? `unknown ${kind}`;
}
