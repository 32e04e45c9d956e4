/** `ctl orgs`, `teams` and `projects`: create, list, show and delete what keys are in. */
import { buildCommand } from "@stricli/core";
import { ScopeKind, type ScopeView, ScopeViewSchema } from "@heddle/proto/gen/tenancy";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { confirm } from "../../io.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  FORM_ALIASES,
  FORM_FLAGS,
  type FormFlags,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { HeddleError } from "@heddle/proto/error";
import { plural } from "../../status/plural.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import type { Listing } from "../../table.ts";
import { callTenancy, listTenancy, type TenancyClient } from "./client.ts";
import { formatFacts, writeHolder } from "./key_show.ts";
import { formatLimits } from "./limit_flags.ts";
import { formatSeconds, formatUnits } from "./units.ts";

/** How a kind of scope is called, and how its path is made up. */
interface Words {
  readonly kind: ScopeKind;
  readonly one: string;
  readonly many: string;
  /** What its commands are called. */
  readonly command: string;
  readonly path: string;
}

const WORDS = {
  organisation: {
    kind: ScopeKind.ORGANISATION,
    one: "organisation",
    many: "organisations",
    command: "orgs",
    path: "org",
  },
  team: {
    kind: ScopeKind.TEAM,
    one: "team",
    many: "teams",
    command: "teams",
    path: "org/team",
  },
  project: {
    kind: ScopeKind.PROJECT,
    one: "project",
    many: "projects",
    command: "projects",
    path: "org[/team]/project",
  },
} as const satisfies Record<string, Words>;

const pathParameter = (words: Words, brief: string) =>
  ({ kind: "tuple", parameters: [{ parse: String, brief, placeholder: words.path }] }) as const;

/** "an organisation", "a team". */
function a({ one }: Words): string {
  return `${/^[aeiou]/.test(one) ? "an" : "a"} ${one}`;
}

/** `list`, `show`, `create` and `delete` of one kind of scope. */
export function scopeCommands(name: keyof typeof WORDS) {
  const words = WORDS[name];
  return {
    list: listOf(words),
    show: showOf(words),
    create: createOf(words),
    delete: deleteOf(words),
  };
}

interface InFlags extends ListFlags {
  readonly in?: string;
}

/** The flag of lists of what is somewhere. */
export const IN_FLAG = {
  in: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "path",
    brief: "Only what is in this organisation, team or project",
  },
} as const;

function listOf(words: Words) {
  return buildCommand({
    docs: { brief: `List ${words.many}` },
    parameters: { flags: { ...LIST_FLAGS, ...IN_FLAG }, aliases: LIST_ALIASES },
    async func(this: CtlContext, flags: InFlags) {
      await listTenancy(this, flags, async (client) => {
        const request = { kind: words.kind, in: flags.in ?? "" };
        const { scopes } = await client.listScopes(request, { timeoutMs: CALL_TIMEOUT_MS });
        return scopeListing(scopes, words);
      });
    },
  });
}

interface ShowFlags extends CommonFlags, FormFlags {}

function showOf(words: Words) {
  return buildCommand({
    docs: {
      brief: `Show what is in ${a(words)}, its limits, and where each limit comes from`,
    },
    parameters: {
      flags: { ...COMMON_FLAGS, ...FORM_FLAGS },
      aliases: FORM_ALIASES,
      positional: pathParameter(words, "Path, the end of it, or id"),
    },
    async func(this: CtlContext, flags: ShowFlags, name: string) {
      const { scope, inside, limits } = await callTenancy(this, flags, async (client) => {
        const { scope, inside } = await findOfKind(client, words, name);
        const options = { timeoutMs: CALL_TIMEOUT_MS };
        const { limits } = await client.getLimits({ scope: scope.id }, options);
        return { scope, inside, limits };
      });
      const count = (kind: ScopeKind) => inside.filter((each) => each.kind === kind).length;
      const counts = { teams: count(ScopeKind.TEAM), projects: count(ScopeKind.PROJECT) };
      writeHolder(this, flags, {
        holder: scope.path,
        record: { ...toRecord(ScopeViewSchema, scope), ...counts },
        text: formatScope(scope, words, counts),
        limits,
      });
    },
  });
}

/** The scope of that name and kind, and what is in it. Throws `not_found`. */
async function findOfKind(
  client: TenancyClient,
  words: Words,
  name: string,
): Promise<{ readonly scope: ScopeView; readonly inside: readonly ScopeView[] }> {
  const { scopes } = await client.listScopes({ in: name }, { timeoutMs: CALL_TIMEOUT_MS });
  // The paths of all others go on from its own.
  const [scope, ...inside] = scopes.toSorted((a, b) => a.path.length - b.path.length);
  if (scope?.kind === words.kind) return { scope, inside };
  const real = Object.values(WORDS).find(({ kind }) => kind === scope?.kind);
  throw new HeddleError(
    "not_found",
    real === undefined
      ? `There is no ${words.one} "${name}". List what there is with: heddle ${words.command} list`
      : `"${name}" is ${a(real)}, not ${
        a(words)
      }. Show it with: heddle ${real.command} show ${name}`,
  );
}

/** A scope in words; what can be in it is counted at any depth. */
function formatScope(
  scope: ScopeView,
  words: Words,
  counts: { readonly teams: number; readonly projects: number },
): string {
  const { kind, spentMicro } = scope;
  const project = kind === ScopeKind.PROJECT;
  const title = words.one.slice(0, 1).toUpperCase() + words.one.slice(1);
  return formatFacts([
    [title, scope.path],
    ["Id", scope.id],
    ...(kind === ScopeKind.ORGANISATION ? [["Teams", String(counts.teams)] as const] : []),
    ...(project ? [] : [["Projects", String(counts.projects)] as const]),
    ["Keys", String(scope.keys)],
    ["Own limits", formatLimits(scope.limits) || "none"],
    ...(spentMicro === undefined ? [] : [["Spent", formatUnits(spentMicro)] as const]),
    ...(project
      ? [
        ["Band", scope.band || "the router's own"] as const,
        ["Routing", scope.routingProfile || "the model's own"] as const,
      ]
      : []),
    ["Created", `${formatSeconds(scope.createdAtS)} by ${scope.createdBy}`],
  ]);
}

interface CreateFlags extends CommonFlags {
  readonly routingProfile?: string;
  readonly band?: string;
}

function createOf(words: Words) {
  return buildCommand({
    docs: { brief: `Create ${a(words)}` },
    parameters: {
      flags: {
        ...COMMON_FLAGS,
        routingProfile: {
          kind: "parsed",
          parse: String,
          optional: true,
          placeholder: "profile",
          brief: "Of projects: chat, batch or long-context, for keys that have none",
        },
        band: {
          kind: "parsed",
          parse: String,
          optional: true,
          placeholder: "band",
          brief: "Of projects: platinum, gold, silver or bronze, for keys that have none",
        },
      },
      positional: pathParameter(words, "Where it is to be, with its name last"),
    },
    async func(this: CtlContext, flags: CreateFlags, path: string) {
      const parts = path.split("/");
      const request = {
        kind: words.kind,
        name: parts.at(-1) ?? "",
        parent: parts.slice(0, -1).join("/"),
        routingProfile: flags.routingProfile ?? "",
        band: flags.band ?? "",
      };
      const { scope } = await callTenancy(
        this,
        flags,
        (client) => client.createScope(request, { timeoutMs: CALL_TIMEOUT_MS }),
      );
      this.io.out(`Created ${words.one} ${scope?.path}, ${scope?.id}\n`);
    },
  });
}

function deleteOf(words: Words) {
  return buildCommand({
    docs: {
      brief: `Delete ${a(words)}`,
      fullDescription: "With all that is in it. Its keys are revoked; what they used stays known.",
    },
    parameters: {
      flags: { ...COMMON_FLAGS, ...YES_FLAG },
      positional: pathParameter(words, "Path, the end of it, or id"),
    },
    async func(this: CtlContext, flags: SureFlags, name: string) {
      const found = await callTenancy(
        this,
        flags,
        (client) => findOfKind(client, words, name),
      );
      const { id: scope, path, keys } = found.scope;
      const inside = found.inside.length === 0 ? "" : ", all that is in it";
      const gone = keys === 0 ? "" : ` and revoke ${plural(keys, "key")}`;
      await confirm(this, flags, `Delete ${words.one} ${path}${inside}${gone}?`);
      const { revokedKeys } = await callTenancy(
        this,
        flags,
        (client) => client.deleteScope({ scope, yes: true }, { timeoutMs: CALL_TIMEOUT_MS }),
      );
      this.io.out(`Deleted ${words.one} ${path}; ${plural(revokedKeys, "key")} revoked\n`);
    },
  });
}

/** The table of scopes. */
export function scopeListing(
  scopes: readonly ScopeView[],
  words: Pick<Words, "one" | "command" | "path">,
): Listing<ScopeView> {
  return {
    rows: scopes,
    empty: `No ${words.one} yet. Create one with: heddle ${words.command} create ${words.path}`,
    record: (scope) => toRecord(ScopeViewSchema, scope),
    fields: fieldsOf(ScopeViewSchema),
    columns: [
      { title: words.one.toUpperCase(), cell: (scope) => scope.path },
      { title: "KEYS", cell: (scope) => String(scope.keys) },
      { title: "LIMITS", cell: (scope) => formatLimits(scope.limits) },
      {
        title: "SPENT",
        cell: ({ spentMicro }) => spentMicro === undefined ? "" : formatUnits(spentMicro),
      },
      { title: "ID", cell: (scope) => scope.id, wide: true },
      { title: "BAND", cell: (scope) => scope.band, wide: true },
      { title: "ROUTING", cell: (scope) => scope.routingProfile, wide: true },
      { title: "CREATED", cell: (scope) => formatSeconds(scope.createdAtS), wide: true },
      { title: "BY", cell: (scope) => scope.createdBy, wide: true },
    ],
  };
}
