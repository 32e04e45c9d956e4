/** Releases for upgrades: the programs of one release, calling themselves by another version. */
import { join } from "node:path";
import { runCommand } from "./command.ts";

export interface NextRelease {
  /** Folder of the release to start from. */
  readonly from: string;
  readonly to: string;
  readonly version: string;
  /** What a program's bundle is to hold instead: name of the program → text. */
  readonly broken?: Readonly<Record<string, string>>;
  /** What a program's bundle is to begin with: name of the program → text. */
  readonly before?: Readonly<Record<string, string>>;
}

/** Writes the release. Returns its folder. */
export async function writeNextRelease(next: NextRelease): Promise<string> {
  const { from, to, version } = next;
  await runCommand(["cp", "-r", from, to]);
  const about = JSON.parse(await Deno.readTextFile(join(to, "release.json")));
  await Deno.writeTextFile(
    join(to, "release.json"),
    `${JSON.stringify({ ...about, version }, null, 2)}\n`,
  );
  for await (const { name } of Deno.readDir(join(to, "lib"))) {
    const file = join(to, "lib", name);
    const program = name.replace(".mjs", "");
    const text = next.broken?.[program] ?? await Deno.readTextFile(file);
    const own = text.replaceAll(`"${about.version}"`, `"${version}"`);
    await Deno.writeTextFile(file, (next.before?.[program] ?? "") + own);
  }
  const sums = await runCommand([
    "/bin/sh",
    "-ec",
    'cd "$1" && find . -type f ! -name SHA256SUMS | sed "s:^./::" | sort | xargs sha256sum',
    "sh",
    to,
  ]);
  await Deno.writeTextFile(join(to, "SHA256SUMS"), sums);
  return to;
}
