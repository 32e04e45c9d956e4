/** Whether this machine lets a lab be: namespaces, mounts and a systemd of its own. */
import { attemptCommand } from "../command.ts";

/** A boot takes a second; a machine that needs longer than this is none for a lab. */
const BOOT_MS_MAX = 60_000;

const SPACES = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Why no namespaces can be made here, in one line; undefined when they can. Takes no time. */
export async function separates(): Promise<string | undefined> {
  const argv = ["unshare", ...SPACES, "mount", "-t", "tmpfs", "lab", "/run"];
  const { code, stderr } = await attemptCommand(argv, { limitMs: BOOT_MS_MAX });
  return code === 0 ? undefined : `no namespaces of its own: ${lastLine(stderr, code)}`;
}

function lastLine(text: string, code: number): string {
  return text.trim().split("\n").at(-1) || `exit code ${code}`;
}

/**
 * Boots the base once, without anything around it. Undefined when that works; otherwise why it does
 * not, in one line. Containers without privileges say so within a second.
 */
export async function runsHere(base: string): Promise<string | undefined> {
  const mounts = [
    "mount -t tmpfs lab /run",
    "mkdir /run/u /run/w /run/m",
    `mount -t overlay -o lowerdir=${base},upperdir=/run/u,workdir=/run/w overlay /run/m`,
    // It says that it is up, and powers itself off.
    "systemd-nspawn --quiet --register=no --keep-unit --directory=/run/m --machine=probe " +
    "--console=pipe --boot systemd.unit=poweroff.target </dev/null >/run/console 2>&1",
  ];
  const argv = ["unshare", ...SPACES, "/bin/sh", "-ec", mounts.join("\n")];
  try {
    const { code, stderr } = await attemptCommand(argv, { limitMs: BOOT_MS_MAX });
    if (code === 0) return undefined;
    return `no systemd boots here: ${lastLine(stderr, code)}`;
  } catch (error) {
    return `no systemd boots here: ${error instanceof Error ? error.message : String(error)}`;
  }
}
