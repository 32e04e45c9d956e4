/**
 * The transient unit that keeps engines' logs from growing while no agent runs. It is no part of an
 * engine's unit: it must see files that engines must not, and an engine must not end with it.
 */

/** Twice of what the agent lets a log grow to, so that there is nothing to do while one runs. */
const LOG_BYTES_MAX = 128 * 1024 * 1024;

/** Its name: one for each folder, so that agents with folders of their own do not share it. */
export function logKeeperOf(folder: string): string {
  const name = folder.replaceAll(/[^A-Za-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  return `heddle-logs-${name.slice(-180)}.service`;
}

/** Arguments of systemd-run that start it. It ends by itself when nothing is left in the folder. */
export function logKeeperArguments(
  { shim, folder, slice }: {
    /** Absolute path of heddle-shim. */
    readonly shim: string;
    readonly folder: string;
    readonly slice: string;
  },
): readonly string[] {
  const properties = [
    "Restart=on-failure",
    "RestartSec=5",
    "UMask=0077",
    "LimitCORE=0",
    "TasksMax=16",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    `ReadWritePaths="${folder.replaceAll(/[\\"]/g, "\\$&")}"`,
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "PrivateNetwork=yes",
    "CPUWeight=20",
    "IOWeight=20",
  ];
  return [
    "--quiet",
    "--no-ask-password",
    "--collect",
    "--service-type=exec",
    `--unit=${logKeeperOf(folder)}`,
    `--slice=${slice}`,
    "--description=Heddle keeps engines' logs from growing",
    ...properties.map((property) => `--property=${property}`),
    "--",
    ...[shim, "keep-logs", folder, String(LOG_BYTES_MAX)].map((word) =>
      word.replaceAll("$", "$$$$")
    ),
  ];
}
