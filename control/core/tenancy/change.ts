/**
 * Operators' changes of who may use what, as records to store. Each is checked against what there is,
 * and carries what was before and is after into the audit trail. Nothing here changes anything.
 */
import { HeddleError } from "@heddle/proto/error";
import type { StoreRecord } from "../store_record.ts";
import { chainOf, childNamed, findKey, findScope, isIn, keyState, pathOf } from "./chain.ts";
import {
  checkBand,
  checkKeySettings,
  checkLimits,
  checkPrice,
  checkRoutingProfile,
  checkScopeName,
  type KeySettings,
  refuse,
} from "./rules.ts";
import type {
  StoredKey,
  StoredLimits,
  StoredPrice,
  StoredScope,
  StoredSecret,
  Tenancy,
  TenancyRecord,
} from "./stored.ts";

/** Keys that are kept, revoked ones included: usage refers to them, and control has them in memory. */
export const KEYS_MAX = 1_000_000;

/** Organisations, teams and projects that are kept. */
const SCOPES_MAX = 100_000;

/** Who changes something, and when, in ms since 1970. */
export interface By {
  readonly by: string;
  readonly now: number;
}

/** What to store for one change: the facts, and who said so. */
export interface Change {
  readonly records: readonly TenancyRecord[];
  readonly audit: StoreRecord;
}

export interface NewScope {
  readonly id: string;
  readonly kind: StoredScope["kind"];
  readonly name: string;
  /** Id or path; empty for an organisation. */
  readonly parent: string;
  readonly routingProfile: string;
  readonly band: string;
}

/** Throws `invalid_input`, `not_found`, or `failed_precondition` for a name that is taken. */
export function createScope(tenancy: Tenancy, scope: NewScope, who: By): Change {
  const { id, kind, name, routingProfile, band } = scope;
  const action = `create ${kind} "${name.slice(0, 63)}"`;
  checkScopeName(`create the ${kind}`, name);
  checkRoutingProfile(action, routingProfile);
  checkBand(action, band);
  if (`${routingProfile}${band}` !== "" && kind !== "project") {
    refuse(action, "only a project has a routing profile or a band");
  }
  if (tenancy.scopes.size >= SCOPES_MAX) throw full(action, SCOPES_MAX, "scopes");
  const parent = parentOf(tenancy, action, scope);
  if (childNamed(tenancy, parent, name) !== undefined) {
    const where = parent === "" ? "" : ` in "${pathOf(tenancy, parent)}"`;
    throw new HeddleError("failed_precondition", `Cannot ${action}: there is one${where} already`);
  }
  const said = { kind, name, parent, routingProfile, band };
  const value = { ...said, createdAt: who.now, createdBy: who.by };
  const path = parent === "" ? name : `${pathOf(tenancy, parent)}/${name}`;
  return {
    records: [{ kind: "scope", id, value }],
    audit: auditOf(who, { action: `create_${kind}`, subject: path, after: { id, ...value } }),
  };
}

function parentOf(tenancy: Tenancy, action: string, { kind, parent }: NewScope): string {
  if (kind === "organisation") {
    if (parent !== "") refuse(action, "an organisation is in nothing");
    return "";
  }
  if (parent === "") refuse(action, `say what the ${kind} is in`);
  const id = findScope(tenancy, action, { name: parent });
  const inKind = tenancy.scopes.get(id)?.kind;
  const fits = inKind === "organisation" || (kind === "project" && inKind === "team");
  if (!fits) {
    const want = kind === "team" ? "an organisation" : "an organisation or a team";
    refuse(action, `"${pathOf(tenancy, id)}" is a ${inKind}, and a ${kind} is in ${want}`);
  }
  return id;
}

/** Deletes a scope, what is in it, and revokes its keys. Throws `not_found`, `failed_precondition`. */
export function deleteScope(
  tenancy: Tenancy,
  { name, yes }: { readonly name: string; readonly yes: boolean },
  who: By,
): Change {
  const id = findScope(tenancy, "delete", { name });
  const path = pathOf(tenancy, id);
  const scopes = [...tenancy.scopes].filter(([each, scope]) =>
    scope.deletedAt === undefined && isIn(tenancy, each, id)
  );
  const keys = [...tenancy.keys].filter(([each, key]) =>
    key.revokedAt === undefined && isIn(tenancy, each, id)
  );
  if (!yes && (scopes.length > 1 || keys.length > 0)) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot delete "${path}": ${scopes.length - 1} teams and projects and ${keys.length} keys ` +
        "are in it. Delete them too with --yes",
    );
  }
  const kind = tenancy.scopes.get(id)?.kind ?? "project";
  const after = { deleted: scopes.map(([each]) => pathOf(tenancy, each)), revoked: keys.length };
  return {
    records: [
      ...scopes.map(([each, value]): TenancyRecord => ({
        kind: "scope",
        id: each,
        value: { ...value, deletedAt: who.now },
      })),
      ...keys.map(([each, value]): TenancyRecord => ({
        kind: "key",
        id: each,
        value: { ...value, revokedAt: who.now },
      })),
    ],
    audit: auditOf(who, { action: `delete_${kind}`, subject: path, before: { id }, after }),
  };
}

/** Replaces the limits of a scope or key by its id; without any it limits nothing. */
export function setLimits(tenancy: Tenancy, id: string, limits: StoredLimits, who: By): Change {
  checkLimits("set limits", limits);
  const before = tenancy.limits.get(id);
  const none = Object.values(limits).every((value) => value === undefined);
  const record: TenancyRecord = none ? { kind: "limits", id } : {
    kind: "limits",
    id,
    value: limits,
  };
  const subject = tenancy.keys.has(id) ? id : pathOf(tenancy, id);
  return {
    records: [record],
    audit: auditOf(who, { action: "set_limits", subject, before: before ?? {}, after: limits }),
  };
}

export interface NewKey {
  readonly id: string;
  /** Id or path. */
  readonly project: string;
  readonly settings: KeySettings;
  readonly secret: StoredSecret;
  readonly limits: StoredLimits;
}

/** Throws `invalid_input`, `not_found` or `exhausted`. */
export function createKey(tenancy: Tenancy, key: NewKey, who: By): Change {
  const action = "create a key";
  const project = findScope(tenancy, action, { name: key.project, kind: "project" });
  const kind = tenancy.scopes.get(project)?.kind;
  if (kind !== "project") {
    refuse(action, `"${pathOf(tenancy, project)}" is a ${kind}, and keys are in projects`);
  }
  checkKeySettings(action, key.settings);
  checkLimits(action, key.limits);
  if (tenancy.keys.size >= KEYS_MAX) throw full(action, KEYS_MAX, "keys");
  const value: StoredKey = {
    ...key.settings,
    project,
    secrets: [key.secret],
    createdAt: who.now,
    createdBy: who.by,
  };
  const limited = Object.values(key.limits).some((each) => each !== undefined);
  return {
    records: [
      { kind: "key", id: key.id, value },
      ...(limited ? [{ kind: "limits", id: key.id, value: key.limits } as const] : []),
    ],
    audit: auditOf(who, {
      action: "create_key",
      subject: key.id,
      after: { ...tellable(tenancy, value), ...(limited ? { limits: key.limits } : {}) },
    }),
  };
}

/** Replaces what is said about a key. Throws as `createKey` does, and for one that is revoked. */
export function updateKey(
  tenancy: Tenancy,
  { name, settings }: { readonly name: string; readonly settings: KeySettings },
  who: By,
): Change {
  const { id, key } = liveKey(tenancy, "update", name);
  checkKeySettings(`update key ${id}`, settings);
  const { project, secrets, createdAt, createdBy } = key;
  const value: StoredKey = { ...settings, project, secrets, createdAt, createdBy };
  return changeKey(tenancy, { id, value, action: "update_key" }, who);
}

/** A new secret beside the newest old one, which ends after `overlapMs`; older ones end at once. */
export function rotateKey(
  tenancy: Tenancy,
  { name, secret, overlapMs }: {
    readonly name: string;
    readonly secret: StoredSecret;
    readonly overlapMs: number;
  },
  who: By,
): Change {
  const { id, key } = liveKey(tenancy, "rotate", name);
  const old = key.secrets.at(-1);
  const until = who.now + overlapMs;
  const kept = old === undefined || overlapMs <= 0
    ? []
    : [{ ...old, expiresAt: Math.min(old.expiresAt ?? Infinity, until) }];
  const value = { ...key, secrets: [...kept, secret] };
  return changeKey(tenancy, { id, value, action: "rotate_key" }, who);
}

/** Revokes a key; nothing is changed by revoking it again. */
export function revokeKey(
  tenancy: Tenancy,
  { name, reason }: { readonly name: string; readonly reason: string },
  who: By,
): Change {
  const id = findKey(tenancy, "revoke", name);
  const key = tenancy.keys.get(id);
  if (key === undefined) throw new HeddleError("not_found", `Cannot revoke: no key "${id}"`);
  const value = { ...key, revokedAt: key.revokedAt ?? who.now };
  return changeKey(tenancy, { id, value, action: "revoke_key", reason }, who);
}

/** Sets the price of a model, also of one that the catalog does not have yet; absent removes it. */
export function setPrice(
  tenancy: Tenancy,
  { model, price }: { readonly model: string; readonly price: StoredPrice | undefined },
  who: By,
): Change {
  checkPrice("set a price", model, price);
  const before = tenancy.prices.get(model);
  return {
    records: [
      price === undefined
        ? { kind: "price", id: model }
        : { kind: "price", id: model, value: price },
    ],
    audit: auditOf(who, {
      action: "set_price",
      subject: model,
      before: before ?? {},
      after: price ?? {},
    }),
  };
}

function changeKey(
  tenancy: Tenancy,
  { id, value, action, reason = "" }: {
    readonly id: string;
    readonly value: StoredKey;
    readonly action: string;
    readonly reason?: string;
  },
  who: By,
): Change {
  const key = tenancy.keys.get(id);
  const before = key === undefined ? {} : tellable(tenancy, key);
  const after = tellable(tenancy, value);
  return {
    records: [{ kind: "key", id, value }],
    audit: auditOf(who, { action, subject: id, before, after, reason }),
  };
}

function liveKey(tenancy: Tenancy, action: string, name: string): { id: string; key: StoredKey } {
  const id = findKey(tenancy, action, name);
  const key = tenancy.keys.get(id);
  if (key !== undefined && keyState(key, -Infinity) !== "revoked") return { id, key };
  throw new HeddleError("failed_precondition", `Cannot ${action} key ${id}: it is revoked`);
}

/** A key for the audit trail: all but the hashes. */
function tellable(tenancy: Tenancy, key: StoredKey) {
  const { secrets, project, ...rest } = key;
  return {
    ...rest,
    project: chainOf(tenancy, project).map(({ name }) => name).join("/"),
    secrets: secrets.map(({ shown, expiresAt }) => ({ shown, expiresAt })),
  };
}

function auditOf(
  { by, now }: By,
  what: {
    readonly action: string;
    readonly subject: string;
    readonly reason?: string;
    readonly before?: unknown;
    readonly after?: unknown;
  },
): StoreRecord {
  const { action, subject, reason = "", before, after } = what;
  return {
    kind: "audit",
    at: now,
    by,
    action,
    subject,
    reason,
    ...(before === undefined ? {} : { before: JSON.stringify(before) }),
    ...(after === undefined ? {} : { after: JSON.stringify(after) }),
  };
}

function full(action: string, max: number, what: string): HeddleError {
  return new HeddleError("exhausted", `Cannot ${action}: there are ${max} ${what} already`);
}
