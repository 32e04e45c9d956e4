/** SHA256SUMS: every file of a release, in the form that `sha256sum --check` reads. */
import { createHash } from "node:crypto";

const SUMS = "SHA256SUMS";

/** The checksum of a file's bytes, in hexadecimal. */
export async function sha256File(path: string): Promise<string> {
  const hash = createHash("sha256");
  using file = await Deno.open(path);
  for await (const bytes of file.readable) hash.update(bytes);
  return hash.digest("hex");
}

/** Writes SHA256SUMS over all files below `folder`, sorted by path. */
export async function writeSums(folder: string): Promise<void> {
  const lines: string[] = [];
  for (const path of filesBelow(folder)) {
    if (path !== SUMS) lines.push(`${await sha256File(`${folder}/${path}`)}  ${path}\n`);
  }
  await Deno.writeTextFile(`${folder}/${SUMS}`, lines.join(""));
}

/** Paths of all files below `folder`, sorted. */
export function filesBelow(folder: string, under = ""): string[] {
  return [...Deno.readDirSync(`${folder}/${under}`)].flatMap(({ name, isDirectory }) => {
    const path = under === "" ? name : `${under}/${name}`;
    return isDirectory ? filesBelow(folder, path) : [path];
  }).sort();
}
