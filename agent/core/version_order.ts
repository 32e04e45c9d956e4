/** Whether one version of an engine comes before another, as far as that can be told. */

/**
 * True when `version` is older than `since`; false when it is not, or nobody can say. What follows the
 * numbers (`rc1`, `+cu129`, `.post2`) is passed over: a candidate has what its release has. Builds from
 * source call themselves `0.1.dev…`, whatever they are.
 */
export function isOlder(version: string, since: string): boolean {
  if (/dev/i.test(version)) return false;
  const [ours, theirs] = [numbersOf(version), numbersOf(since)];
  if (ours.length === 0) return false;
  for (let at = 0; at < Math.max(ours.length, theirs.length); at++) {
    const difference = (ours[at] ?? 0) - (theirs[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** True when `version` is surely `since` or later; false when it is older, or nobody can say. */
export function isAtLeast(version: string, since: string): boolean {
  return !/dev/i.test(version) && numbersOf(version).length > 0 && !isOlder(version, since);
}

function numbersOf(version: string): readonly number[] {
  const digits = /^v?(\d{1,9}(?:\.\d{1,9}){0,5})/.exec(version.trim())?.[1];
  return digits === undefined ? [] : digits.split(".").map(Number);
}
