/** What the lab needs of the machine it runs on, and how that gets there. */
import { attemptCommand } from "../command.ts";

/** A program of this machine and the Debian package that has it. */
interface Tool {
  readonly program: string;
  readonly debianPackage: string;
}

const TOOLS: readonly Tool[] = [
  { program: "mmdebstrap", debianPackage: "mmdebstrap" },
  { program: "systemd-nspawn", debianPackage: "systemd-container" },
  { program: "ip", debianPackage: "iproute2" },
  { program: "nsenter", debianPackage: "util-linux" },
  { program: "unshare", debianPackage: "util-linux" },
  { program: "mount", debianPackage: "mount" },
  { program: "ssh", debianPackage: "openssh-client" },
  { program: "ssh-keygen", debianPackage: "openssh-client" },
];

/** A slow mirror, or a machine that is busy. */
const INSTALL_MS_MAX = 300_000;

/** Installs what is missing. Throws in words when this machine cannot be a lab. */
export async function prepareHost(say: (line: string) => void): Promise<void> {
  if (Deno.build.os !== "linux") throw new Error("Cannot run the lab: it needs Linux");
  if (Deno.uid() !== 0) {
    throw new Error("Cannot run the lab: it boots systemd nodes, for which it must be root");
  }
  const missing = await missingTools();
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map(({ debianPackage }) => debianPackage))];
  const programs = missing.map(({ program }) => program).join(", ");
  if (!await isThere("apt-get")) {
    throw new Error(
      `Cannot run the lab: ${programs} missing. Install what Debian packages as ${
        packages.join(" ")
      }`,
    );
  }
  say(`Installing ${packages.join(" ")}: ${programs} missing`);
  const script = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"';
  const { code, stderr } = await attemptCommand(["/bin/sh", "-c", script, "sh", ...packages], {
    env: { DEBIAN_FRONTEND: "noninteractive" },
    limitMs: INSTALL_MS_MAX,
  });
  if (code !== 0) {
    throw new Error(`Cannot run the lab: apt-get does not install ${packages}:\n${stderr}`);
  }
}

async function missingTools(): Promise<readonly Tool[]> {
  const there = await Promise.all(TOOLS.map(({ program }) => isThere(program)));
  return TOOLS.filter((_, index) => there[index] === false);
}

async function isThere(program: string): Promise<boolean> {
  const { code } = await attemptCommand(["/bin/sh", "-c", 'command -v "$1"', "sh", program]);
  return code === 0;
}
