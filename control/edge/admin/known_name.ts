/** What an operator is told who asks for something that does not exist. */
import { HeddleError } from "@heddle/proto/error";

/** Names listed in a message: more do not fit on a screen. */
const LISTED_MAX = 10;

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
