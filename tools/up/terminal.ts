/** Where `up` and `down` find things, and how they speak. */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { errorText, HeddleError } from "@heddle/proto/error";

/** Top of the repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

const encoder = new TextEncoder();

export function say(line: string): void {
  try {
    Deno.stdout.writeSync(encoder.encode(`${line}\n`));
  } catch {
    // Nobody listens any more (a closed pipe); what is being done goes on.
  }
}

/** Absolute path of the state directory that the flags mean. */
export function stateDirectory(
  options: { state: string | undefined; portsFrom: number | undefined },
): string {
  if (options.state !== undefined) return resolve(options.state);
  const name = options.portsFrom === undefined ? "up" : `up-${options.portsFrom}`;
  return join(ROOT, ".heddle", name);
}

/** Absolute path of the launchers: a release's, or the repository's. Throws `invalid_input`. */
export async function launcherDirectory(options: { dist: string | undefined }): Promise<string> {
  if (options.dist === undefined) return join(ROOT, "bin");
  const release = resolve(options.dist);
  try {
    await Deno.stat(join(release, "release.json"));
  } catch (error) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use --dist ${options.dist}: ${errorText(error)}. Make a release with ` +
        `${denoCommand()} task build`,
    );
  }
  return join(release, "bin");
}

/** A word as a shell takes it, for commands that can be pasted. */
export function shellWord(word: string): string {
  return /^[\w@%+=:./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** How to call Deno again: the short name when it is on the user's own PATH. */
export function denoCommand(): string {
  const throughNpx = (Deno.env.get("PATH") ?? "").split(":")[0]?.includes("/_npx/") === true;
  return throughNpx ? `npx -y deno@${Deno.version.deno}` : "deno";
}
