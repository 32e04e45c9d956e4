/** Which keys an operator asks for, a page at a time. */
import type { ListKeysRequest } from "@heddle/proto/gen/tenancy";
import { chainOf, findKey, findScope, keyState } from "../../core/tenancy/chain.ts";
import type { Tenancy } from "../../core/tenancy/stored.ts";

/** Keys in one answer. */
const PAGE_MAX = 1_000;

/** Ids in an order that stays while this control leads. Throws `not_found` for a scope or key that is none. */
export function listKeys(
  tenancy: Tenancy,
  request: Pick<ListKeysRequest, "in" | "all" | "keys" | "after" | "limit">,
  now: number,
): { readonly ids: readonly string[]; readonly more: boolean } {
  const scope = request.in === ""
    ? undefined
    : findScope(tenancy, "list keys", { name: request.in });
  const named = request.keys.slice(0, PAGE_MAX).map((name) => findKey(tenancy, "show", name));
  const limit = Math.min(request.limit === 0 ? PAGE_MAX : request.limit, PAGE_MAX);
  const candidates = named.length > 0 ? named : tenancy.keys.keys();
  const ids: string[] = [];
  let reached = request.after === "";
  for (const id of candidates) {
    const key = tenancy.keys.get(id);
    if (key === undefined) continue;
    if (!reached) {
      reached = id === request.after;
      continue;
    }
    // Who names a key wants to see it, whatever became of it.
    if (!request.all && named.length === 0 && keyState(key, now) !== "active") continue;
    if (scope !== undefined && !chainOf(tenancy, key.project).some((link) => link.id === scope)) {
      continue;
    }
    if (ids.length === limit) return { ids, more: true };
    ids.push(id);
  }
  return { ids, more: false };
}
