/** What makes the ids of one time of leading unlike those of any other; see `World.salt`. */

/** No vowels, so that it spells nothing, and no letter that looks like another. */
const LETTERS = "bcdfghjkmnpqrstvwxz";

/** Two and a half million: it matters only where terms are the same, which is after a loss. */
const LENGTH = 5;

/** Five letters at random. */
export function idSalt(): string {
  const random = crypto.getRandomValues(new Uint32Array(LENGTH));
  return Array.from(random, (number) => LETTERS[number % LETTERS.length]).join("");
}
