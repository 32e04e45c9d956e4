/** What the router knows of a key: whose it is and what it may do. Never the key itself. */
import { isIn, type Network } from "../request/network.ts";

export interface TenantKey {
  readonly id: string;
  readonly name: string;
  readonly organisation: string;
  readonly project: string;
  readonly projectId: string;
  /** First characters of its secrets, which people may be shown. */
  readonly prefixes: readonly string[];
  /** The scopes that limit it: organisation, team where there is one, project, and the key itself. */
  readonly scopeIds: readonly string[];
  /** Names and aliases of the models it may use; undefined: every one. */
  readonly models: ReadonlySet<string> | undefined;
  /** Undefined: every path. A "*" at the end stands for what begins so. */
  readonly paths: readonly string[] | undefined;
  /** Undefined: from everywhere. */
  readonly networks: readonly Network[] | undefined;
}

/** Whether a key may use a model, which is listed by its name or by an alias. */
export function mayUseModel(
  key: TenantKey,
  model: { readonly name: string; readonly aliases: readonly string[] },
): boolean {
  const { models } = key;
  if (models === undefined) return true;
  return models.has(model.name) || model.aliases.some((alias) => models.has(alias));
}

/** Whether a key may use the path that a request was matched to. */
export function mayUsePath({ paths }: TenantKey, path: string): boolean {
  if (paths === undefined) return true;
  return paths.some((allowed) =>
    allowed.endsWith("*") ? path.startsWith(allowed.slice(0, -1)) : path === allowed
  );
}

/** Whether a key may be used from an address. */
export function mayComeFrom({ networks }: TenantKey, address: string): boolean {
  return networks === undefined || isIn(address, networks);
}
