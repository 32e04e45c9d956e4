/**
 * The file system that every node starts from: a bare Debian with systemd, made once and kept. Its
 * folder bears a digest of how it was made, so that a changed recipe makes a new one.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { runCommand } from "../command.ts";

const SUITE = "bookworm";

/** What a machine has that Ansible can reach, and nothing of Heddle's. */
const PACKAGES = [
  "ca-certificates",
  "dbus",
  "iproute2",
  "less",
  "nftables",
  "openssh-server",
  "openssl",
  "procps",
  "python3",
  "python3-apt",
  "sudo",
  "systemd",
  "systemd-sysv",
  "wget",
];

/** Units that look at disks and mirrors, which nodes do not have. */
const MASKED = [
  "apt-daily-upgrade.timer",
  "apt-daily.timer",
  "dpkg-db-backup.timer",
  "e2scrub_all.timer",
  "fstrim.timer",
  "systemd-networkd-wait-online.service",
];

/** 37 s on two idle cores; mirrors can be slow. */
const MAKE_MS_MAX = 600_000;

/** Returns the folder of the base, made if it is not there yet. */
export async function openBase(cache: string, say: (line: string) => void): Promise<string> {
  const base = join(cache, `base-${digest()}`);
  if (await exists(base)) return base;
  say(`Making the nodes' file system in ${base}: once, about a minute`);
  await Deno.mkdir(cache, { recursive: true });
  // Made beside and moved: what is there is whole, whoever else makes it at the same time.
  const half = `${base}.${Deno.pid}.half`;
  try {
    await runCommand([
      "mmdebstrap",
      "--quiet",
      "--variant=minbase",
      `--include=${PACKAGES.join(",")}`,
      SUITE,
      half,
    ], { limitMs: MAKE_MS_MAX });
    await makeNobodys(half);
    await Deno.rename(half, base);
  } catch (error) {
    await Deno.remove(half, { recursive: true }).catch(() => {});
    if (!await exists(base)) throw error;
  }
  return base;
}

// Two nodes with one machine id would be one machine to systemd and D-Bus.
async function makeNobodys(root: string): Promise<void> {
  await Deno.writeTextFile(join(root, "etc/machine-id"), "");
  await Deno.remove(join(root, "var/lib/dbus/machine-id")).catch(() => {});
  await Deno.remove(join(root, "etc/resolv.conf")).catch(() => {});
  for (const unit of MASKED) {
    const link = join(root, "etc/systemd/system", unit);
    await Deno.remove(link).catch(() => {});
    await Deno.symlink("/dev/null", link);
  }
}

/** Removes bases that earlier recipes made. Call it when no other run of the lab stands on one. */
export async function removeOtherBases(cache: string, base: string): Promise<void> {
  for await (const { name } of Deno.readDir(cache)) {
    const path = join(cache, name);
    if (name.startsWith("base-") && path !== base) {
      await Deno.remove(path, { recursive: true });
    }
  }
}

function digest(): string {
  const recipe = JSON.stringify([SUITE, PACKAGES, MASKED]);
  return createHash("sha256").update(recipe).digest("hex").slice(0, 12);
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
