/** Which files differ between two folders. */

/**
 * Paths, relative to either folder, of files that are missing on one side or differ in their bytes;
 * each with a word that says which. A folder that is absent counts as empty.
 */
export function diffFolders(have: string, want: string): readonly string[] {
  const haveFiles = filesBelow(have);
  const wantFiles = filesBelow(want);
  const paths = [...new Set([...haveFiles.keys(), ...wantFiles.keys()])].sort();
  return paths.flatMap((path) => {
    const a = haveFiles.get(path);
    const b = wantFiles.get(path);
    if (a === undefined) return [`${path} is missing`];
    if (b === undefined) return [`${path} is left over`];
    return a === b ? [] : [`${path} differs`];
  });
}

function filesBelow(folder: string, prefix = ""): Map<string, string> {
  const files = new Map<string, string>();
  for (const entry of entriesOf(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) {
      for (const file of filesBelow(path, `${prefix}${entry.name}/`)) files.set(...file);
    } else {
      files.set(`${prefix}${entry.name}`, Deno.readTextFileSync(path));
    }
  }
  return files;
}

function entriesOf(folder: string): Iterable<Deno.DirEntry> {
  try {
    return [...Deno.readDirSync(folder)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
