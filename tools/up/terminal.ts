/** Where `up` and `down` find things, and how they speak. */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

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

/** How to call Deno again: the short name when it is on the user's own PATH. */
export function denoCommand(): string {
  const throughNpx = (Deno.env.get("PATH") ?? "").split(":")[0]?.includes("/_npx/") === true;
  return throughNpx ? `npx -y deno@${Deno.version.deno}` : "deno";
}
