/** Waits for what has no event. */

const POLL_MS = 50;

/** Resolves once `look` gives something other than false or undefined. Throws after `limitMs`. */
export async function waitFor<T>(
  what: string,
  look: () => T | false | undefined | Promise<T | false | undefined>,
  limitMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== false && found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((tick) => setTimeout(tick, POLL_MS));
  }
}
