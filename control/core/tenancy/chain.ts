/**
 * Organisation → team → project → key: where things are, and how people name them. A path such as
 * "acme/research/chat" names a scope, and so does its end where only one path ends so; an id names
 * anything for ever.
 */
import { HeddleError } from "@heddle/proto/error";
import type { StoredKey, StoredScope, Tenancy } from "./stored.ts";

export type Kind = StoredScope["kind"] | "key";

/** A scope or key, and what it is in. */
export interface Link {
  readonly id: string;
  readonly kind: Kind;
  readonly name: string;
}

/** Deeper than organisation, team and project nothing is; a cycle in what is stored ends here. */
const DEPTH_MAX = 3;

/** From the organisation down to the scope or key itself. Empty for what does not exist. */
export function chainOf(tenancy: Tenancy, id: string): readonly Link[] {
  const key = tenancy.keys.get(id);
  if (key !== undefined) {
    const above = chainOf(tenancy, key.project);
    return above.length === 0 ? [] : [...above, { id, kind: "key", name: key.name }];
  }
  const chain: Link[] = [];
  for (let at = id; at !== "" && chain.length < DEPTH_MAX;) {
    const scope = tenancy.scopes.get(at);
    if (scope === undefined) return [];
    chain.unshift({ id: at, kind: scope.kind, name: scope.name });
    at = scope.parent;
  }
  return chain;
}

/** "acme/research/chat", without the key's own name. */
export function pathOf(tenancy: Tenancy, id: string): string {
  return chainOf(tenancy, id).filter(({ kind }) => kind !== "key").map(({ name }) => name)
    .join("/");
}

/** Whether the key, or the scope, is `scope` or somewhere in it. */
export function isIn(tenancy: Tenancy, id: string, scope: string): boolean {
  return chainOf(tenancy, id).some((link) => link.id === scope);
}

/** Neither deleted itself nor in something deleted. */
export function exists(tenancy: Tenancy, scope: string): boolean {
  return stands(tenancy, chainOf(tenancy, scope));
}

/** Whether nothing on a chain is deleted. */
export function stands(tenancy: Tenancy, chain: readonly Link[]): boolean {
  return chain.length > 0 &&
    chain.every(({ id }) => tenancy.scopes.get(id)?.deletedAt === undefined);
}

/**
 * The id of the scope that is named by id, by path, or by the end of one path alone ("chat" for
 * "acme/research/chat"); with `kind` only one of that kind is meant. Throws `not_found`.
 */
export function findScope(
  tenancy: Tenancy,
  action: string,
  { name, kind }: { readonly name: string; readonly kind?: Kind },
): string {
  const fits = (id: string) => kind === undefined || tenancy.scopes.get(id)?.kind === kind;
  const exact = scopeAt(tenancy, name);
  if ("id" in exact && fits(exact.id)) return exact.id;
  const ends = scopesEnding(tenancy, name).filter(fits);
  const [id] = ends;
  if (id !== undefined && ends.length === 1) return id;
  if (ends.length > 1) {
    throw ambiguous(action, { name, candidates: ends.map((each) => pathOf(tenancy, each)) });
  }
  // Of another kind than was wanted: whoever asked for it says so.
  if ("id" in exact) return exact.id;
  throw new HeddleError(
    "not_found",
    kind === "project"
      ? `Cannot ${action}: there is no project "${short(name)}"${known(tenancy, exact.under)}${
        howToMake(tenancy, name)
      }`
      : `Cannot ${action}: there is no organisation, team or project "${short(name)}"` +
        known(tenancy, exact.under),
  );
}

/** The scope of that id or whole path, or how far the path leads. */
function scopeAt(
  tenancy: Tenancy,
  name: string,
): { readonly id: string } | { readonly under: string } {
  if (tenancy.scopes.has(name) && exists(tenancy, name)) return { id: name };
  let at = "";
  for (const part of name.split("/")) {
    const next = childNamed(tenancy, at, part);
    if (next === undefined) return { under: at };
    at = next;
  }
  return { id: at };
}

function scopesEnding(tenancy: Tenancy, name: string): readonly string[] {
  const last = name.split("/").at(-1);
  return [...tenancy.scopes]
    .filter(([id, scope]) =>
      scope.name === last && exists(tenancy, id) && endsWith(pathOf(tenancy, id), name)
    ).map(([id]) => id);
}

/** Whether `path` is `end`, or ends with it after a slash. */
function endsWith(path: string, end: string): boolean {
  return path === end || path.endsWith(`/${end}`);
}

/** Longest list of what a name may have meant. */
const CANDIDATES_SHOWN = 10;

function ambiguous(
  action: string,
  { name, candidates }: { readonly name: string; readonly candidates: readonly string[] },
): HeddleError {
  const shown = candidates.toSorted().slice(0, CANDIDATES_SHOWN).join(", ");
  const more = candidates.length - CANDIDATES_SHOWN;
  return new HeddleError(
    "not_found",
    `Cannot ${action}: "${short(name)}" may be ${candidates.length} things, say which: ${shown}` +
      (more > 0 ? ` and ${more} more` : ""),
  );
}

/** What makes a project of that path, from the first part that is missing; empty for what is no path. */
function howToMake(tenancy: Tenancy, path: string): string {
  const parts = path.split("/");
  if (parts.length > DEPTH_MAX || parts.some((part) => !/^[\w.-]{1,63}$/.test(part))) return "";
  const whole = parts.length === 1 ? ["ORG", ...parts] : parts;
  const steps = whole.map((_, index) => {
    const command = index === 0 ? "orgs" : index === whole.length - 1 ? "projects" : "teams";
    return { command, path: whole.slice(0, index + 1).join("/") };
  }).filter((step) => !("id" in scopeAt(tenancy, step.path)));
  return `. Make it with: ${
    steps.map(({ command, path }) => `heddle ${command} create ${path}`).join(", then ")
  }`;
}

/** The scope of that name directly in `parent`, by id; "" is where organisations are. */
export function childNamed(tenancy: Tenancy, parent: string, name: string): string | undefined {
  for (const [id, scope] of tenancy.scopes) {
    if (scope.parent === parent && scope.name === name && scope.deletedAt === undefined) return id;
  }
  return undefined;
}

/**
 * The id of the key named by id, by what is shown of one of its secrets, or by its name, also after
 * the end of its project's path ("chat/ci"). Of several of one name those that are revoked do not
 * count. Throws `not_found`.
 */
export function findKey(tenancy: Tenancy, action: string, name: string): string {
  const found = keysNamed(tenancy, name);
  const [id] = found;
  if (id === undefined) {
    throw new HeddleError(
      "not_found",
      `Cannot ${action}: there is no key "${short(name)}"; list them with: heddle keys list`,
    );
  }
  if (found.length === 1) return id;
  throw ambiguous(action, { name, candidates: found.map((each) => keyWords(tenancy, each)) });
}

function keysNamed(tenancy: Tenancy, name: string): readonly string[] {
  if (tenancy.keys.has(name)) return [name];
  const shown = [...tenancy.keys].filter(([, key]) =>
    key.secrets.some((secret) => secret.shown === name)
  ).map(([id]) => id);
  if (shown.length > 0) return shown;
  const named = [...tenancy.keys].filter(([, key]) =>
    endsWith(name, key.name) && endsWith(`${pathOf(tenancy, key.project)}/${key.name}`, name)
  );
  const live = named.filter(([, key]) => key.revokedAt === undefined);
  return (live.length > 0 ? live : named).map(([id]) => id);
}

/** 'acme/chat/ci (key_1)' */
function keyWords(tenancy: Tenancy, id: string): string {
  const key = tenancy.keys.get(id);
  return key === undefined ? id : `${pathOf(tenancy, key.project)}/${short(key.name)} (${id})`;
}

/** The id of a scope or a key, by whatever names it. Throws `not_found`. */
export function findHolder(tenancy: Tenancy, action: string, name: string): string {
  if (tenancy.keys.has(name) || /^(?:key_|sk-)/.test(name)) return findKey(tenancy, action, name);
  if ("id" in scopeAt(tenancy, name)) return findScope(tenancy, action, { name });
  const scopes = scopesEnding(tenancy, name);
  const keys = keysNamed(tenancy, name);
  if (keys.length === 0) return findScope(tenancy, action, { name });
  if (scopes.length === 0) return findKey(tenancy, action, name);
  throw ambiguous(action, {
    name,
    candidates: [
      ...scopes.map((id) => pathOf(tenancy, id)),
      ...keys.map((id) => keyWords(tenancy, id)),
    ],
  });
}

/** "active", "expired" or "revoked". */
export function keyState(key: StoredKey, now: number): "active" | "expired" | "revoked" {
  if (key.revokedAt !== undefined) return "revoked";
  const live = key.secrets.some(({ expiresAt }) => expiresAt === undefined || expiresAt > now);
  return live ? "active" : "expired";
}

/** What was typed, in a message: bounded, and without what could move a cursor. */
export function short(text: string): string {
  // deno-lint-ignore no-control-regex
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, "?");
  return clean.length > 80 ? `${clean.slice(0, 80)}…` : clean;
}

function known(tenancy: Tenancy, parent: string): string {
  const names = [...tenancy.scopes.values()]
    .filter((scope) => scope.parent === parent && scope.deletedAt === undefined)
    .map(({ name }) => name).sort();
  const where = parent === "" ? "" : ` in "${pathOf(tenancy, parent)}"`;
  if (names.length === 0) return `; there is none${where} yet`;
  const more = names.length > 10 ? ` and ${names.length - 10} more` : "";
  return `; known${where}: ${names.slice(0, 10).join(", ")}${more}`;
}
