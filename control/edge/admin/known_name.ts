/** Finds what an operator names, and says what there is when that does not exist. */
import { HeddleError } from "@heddle/proto/error";
import { findModel } from "../../core/catalog.ts";
import type { World } from "../../core/world.ts";

/** Names listed in a message: more do not fit on a screen. */
const LISTED_MAX = 10;

/** The name of a model by name or alias, also of one that only runs any more. Throws `not_found`. */
export function modelName(world: World, action: string, nameOrAlias: string): string {
  return modelAmong(world, { action, nameOrAlias }, []);
}

/** The same, also for one of which only an operator's decision is left. */
export function decidedModelName(world: World, action: string, nameOrAlias: string): string {
  const { paused, scales } = world.decisions;
  return modelAmong(world, { action, nameOrAlias }, [...paused.keys(), ...scales.keys()]);
}

function modelAmong(
  world: World,
  asked: { readonly action: string; readonly nameOrAlias: string },
  others: readonly string[],
): string {
  const { action, nameOrAlias: name } = asked;
  const { catalog } = world.catalog;
  const found = findModel(catalog, name);
  if (found !== undefined) return found.name;
  // One that left the catalog may still run.
  if ([...world.replicas.values()].some(({ model }) => model === name)) return name;
  if (others.includes(name)) return name;
  throw unknownName(
    { action, noun: "model", name },
    catalog.models.flatMap(({ name, aliases }) => [name, ...aliases]),
  );
}

/** The one of that name. Throws `not_found`. */
export function findNamed<T>(
  what: { action: string; noun: string; name: string },
  all: readonly T[],
  nameOf: (each: T) => string,
): T {
  const found = all.find((each) => nameOf(each) === what.name);
  if (found !== undefined) return found;
  throw unknownName(what, all.map(nameOf));
}

/** A `not_found` with the nearest known name, if one is near, and the known names. */
export function unknownName(
  what: { action: string; noun: string; name: string },
  known: Iterable<string>,
): HeddleError {
  const names = [...new Set(known)].sort();
  const near = nearest(what.name, names);
  const hint = near === undefined ? "" : `, did you mean "${near}"?`;
  return new HeddleError(
    "not_found",
    `Cannot ${what.action}: there is no ${what.noun} "${what.name}"${hint || listed(names)}`,
  );
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return ", and none is known yet";
  const more = names.length - LISTED_MAX;
  const shown = names.slice(0, LISTED_MAX).join(", ");
  return `. Known: ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

// A third of the letters may be wrong; more is another name.
function nearest(name: string, names: readonly string[]): string | undefined {
  const wrongMax = Math.max(1, Math.floor(name.length / 3));
  let best: { name: string; distance: number } | undefined;
  for (const candidate of names) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= wrongMax && distance < (best?.distance ?? Infinity)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

/** Letters to insert, delete or replace to turn one word into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
