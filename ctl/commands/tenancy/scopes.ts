/** `ctl orgs`, `teams` and `projects`: create, list and delete what keys are in. */
import { buildCommand } from "@stricli/core";
import { ScopeKind, type ScopeView, ScopeViewSchema } from "@heddle/proto/gen/tenancy";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { confirm } from "../../io.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { plural } from "../../status/plural.ts";
import { toRecord } from "../../record.ts";
import type { Listing } from "../../table.ts";
import { callTenancy, listTenancy } from "./client.ts";
import { formatLimits } from "./limit_flags.ts";
import { formatSeconds, formatUnits } from "./units.ts";

/** How a kind of scope is called, and how its path is made up. */
interface Words {
  readonly kind: ScopeKind;
  readonly one: string;
  readonly many: string;
  readonly path: string;
}

const WORDS = {
  organisation: {
    kind: ScopeKind.ORGANISATION,
    one: "organisation",
    many: "organisations",
    path: "org",
  },
  team: { kind: ScopeKind.TEAM, one: "team", many: "teams", path: "org/team" },
  project: {
    kind: ScopeKind.PROJECT,
    one: "project",
    many: "projects",
    path: "org[/team]/project",
  },
} as const satisfies Record<string, Words>;

const pathParameter = (words: Words, brief: string) =>
  ({ kind: "tuple", parameters: [{ parse: String, brief, placeholder: words.path }] }) as const;

/** `list`, `create` and `delete` of one kind of scope. */
export function scopeCommands(name: keyof typeof WORDS) {
  const words = WORDS[name];
  return { list: listOf(words), create: createOf(words), delete: deleteOf(words) };
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

interface CreateFlags extends CommonFlags {
  readonly routingProfile?: string;
}

function createOf(words: Words) {
  return buildCommand({
    docs: { brief: `Create ${words.one === "organisation" ? "an" : "a"} ${words.one}` },
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
      brief: `Delete ${words.one === "organisation" ? "an" : "a"} ${words.one}`,
      fullDescription: "With all that is in it. Its keys are revoked; what they used stays known.",
    },
    parameters: {
      flags: { ...COMMON_FLAGS, ...YES_FLAG },
      positional: pathParameter(words, "Path or id"),
    },
    async func(this: CtlContext, flags: SureFlags, scope: string) {
      await confirm(this, flags, `Delete ${scope}, all that is in it, and revoke its keys?`);
      const { revokedKeys } = await callTenancy(
        this,
        flags,
        (client) => client.deleteScope({ scope, yes: true }, { timeoutMs: CALL_TIMEOUT_MS }),
      );
      this.io.out(`Deleted ${scope}; ${plural(revokedKeys, "key")} revoked\n`);
    },
  });
}

/** The table of scopes. */
export function scopeListing(
  scopes: readonly ScopeView[],
  words: Pick<Words, "one" | "many" | "path">,
): Listing<ScopeView> {
  return {
    rows: scopes,
    empty: `No ${words.one} yet. Create one with: ${
      words.one === "organisation" ? "orgs" : words.many
    } create ${words.path}`,
    record: (scope) => toRecord(ScopeViewSchema, scope),
    columns: [
      { title: words.one.toUpperCase(), cell: (scope) => scope.path },
      { title: "KEYS", cell: (scope) => String(scope.keys) },
      { title: "LIMITS", cell: (scope) => formatLimits(scope.limits) },
      {
        title: "SPENT",
        cell: ({ spentMicro }) => spentMicro === undefined ? "" : formatUnits(spentMicro),
      },
      { title: "ID", cell: (scope) => scope.id, wide: true },
      { title: "ROUTING", cell: (scope) => scope.routingProfile, wide: true },
      { title: "CREATED", cell: (scope) => formatSeconds(scope.createdAtS), wide: true },
      { title: "BY", cell: (scope) => scope.createdBy, wide: true },
    ],
  };
}
