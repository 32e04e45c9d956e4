/**
 * Organisation → team → project → key: where things are, and how people name them. A path such as
 * "acme/research/chat" names a scope; an id names anything for ever.
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

/** The id of the scope that is named by id or path. Throws `not_found`. */
export function findScope(tenancy: Tenancy, action: string, name: string): string {
  if (tenancy.scopes.has(name) && exists(tenancy, name)) return name;
  const parts = name.split("/");
  let at = "";
  for (const part of parts) {
    const next = childNamed(tenancy, at, part);
    if (next === undefined) {
      throw new HeddleError(
        "not_found",
        `Cannot ${action}: there is no organisation, team or project "${short(name)}"` +
          known(tenancy, at),
      );
    }
    at = next;
  }
  return at;
}

/** The scope of that name directly in `parent`, by id; "" is where organisations are. */
export function childNamed(tenancy: Tenancy, parent: string, name: string): string | undefined {
  for (const [id, scope] of tenancy.scopes) {
    if (scope.parent === parent && scope.name === name && scope.deletedAt === undefined) return id;
  }
  return undefined;
}

/** The id of the key named by id or by what is shown of one of its secrets. Throws `not_found`. */
export function findKey(tenancy: Tenancy, action: string, name: string): string {
  if (tenancy.keys.has(name)) return name;
  const found = [...tenancy.keys].filter(([, key]) =>
    key.secrets.some(({ shown }) => shown === name)
  ).map(([id]) => id);
  const [id, ...others] = found;
  if (id !== undefined && others.length === 0) return id;
  const why = id === undefined
    ? `there is no key "${short(name)}"; list them with: keys list`
    : `"${short(name)}" is what is shown of ${found.length} keys, say which: ${
      found.slice(0, 10).join(", ")
    }`;
  throw new HeddleError("not_found", `Cannot ${action}: ${why}`);
}

/** The id of a scope or a key, by whatever names it. Throws `not_found`. */
export function findHolder(tenancy: Tenancy, action: string, name: string): string {
  if (tenancy.keys.has(name) || /^(?:key_|sk-)/.test(name)) return findKey(tenancy, action, name);
  return findScope(tenancy, action, name);
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
