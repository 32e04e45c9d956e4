/** The transient unit that fetches weights: an unprivileged user that writes one folder only. */
import { environmentOf, type UnitKind } from "./engine_unit.ts";

/** Name of the credential with the hub's token. */
const TOKEN = "token";

export interface FetchUnitOptions {
  /** The one folder that it writes. */
  readonly into: string;
  /** What it makes belongs to that group, so that engines can read it. */
  readonly group: string;
  readonly tokenFile: string | undefined;
}

export function fetchUnits({ into, group, tokenFile }: FetchUnitOptions): UnitKind {
  return {
    prefix: "heddle-fetch-",
    slice: "heddle-fetches.slice",
    what: "fetch",
    confinement: (environment) => [
      ...environmentOf(environment),
      `Group=${group}`,
      "WorkingDirectory=/",
      "UMask=0027",
      "KillMode=mixed",
      "LimitCORE=0",
      "LimitNOFILE=65536",
      "TasksMax=256",
      "NoNewPrivileges=yes",
      "CapabilityBoundingSet=",
      "ProtectSystem=strict",
      `ReadWritePaths=${into}`,
      "ProtectHome=yes",
      "PrivateTmp=yes",
      "PrivateDevices=yes",
      "ProtectKernelModules=yes",
      "ProtectControlGroups=yes",
      "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
      // Engines that serve come first.
      "CPUWeight=20",
      "IOWeight=20",
      // systemd reads the file as root and shows it to this unit alone.
      ...(tokenFile === undefined ? [] : [`LoadCredential=${TOKEN}:${tokenFile}`]),
    ],
  };
}

/** Where the unit of that name reads the token. */
export function tokenPathOf(unit: string): string {
  return `/run/credentials/${unit}/${TOKEN}`;
}
