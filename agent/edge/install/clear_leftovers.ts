/** Takes away what runs that were killed left half done, of whichever version they were. */
import { join } from "node:path";

/** As installing and removing call what is not an engine, or is none any more. */
const LEFTOVER = /^\.(?:installing|removing)-/;

/** Only one run at a time works in `into`, so that nothing of this name is anybody's. Never rejects. */
export async function clearLeftovers(into: string): Promise<void> {
  try {
    for (const { name } of await Array.fromAsync(Deno.readDir(into))) {
      if (LEFTOVER.test(name)) await Deno.remove(join(into, name), { recursive: true });
    }
  } catch {
    // The folder is not there yet, or it stays as it is: an install does not fail for it.
  }
}
