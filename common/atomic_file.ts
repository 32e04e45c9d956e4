/** Files that are there whole or not at all. */

/**
 * Writes beside `path`, syncs, and renames over it. A reader, or a crash at any point, sees the
 * old content or the new. `mode` defaults to 0600: what we write is often secret.
 */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array,
  options: { mode?: number } = {},
): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  const mode = options.mode ?? 0o600;
  try {
    const file = await Deno.open(temporary, { write: true, createNew: true, mode });
    try {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      for (let rest = bytes; rest.length > 0;) rest = rest.subarray(await file.write(rest));
      await file.sync();
    } finally {
      file.close();
    }
    await Deno.rename(temporary, path);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
}

/** The file's text, or undefined when it does not exist. Other failures throw. */
export async function readTextIfExists(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    // A file stands where a folder of the path should be: then there is no such file either.
    if (error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}
