/** The transient unit that installs an engine: an unprivileged user that writes the engines' folder. */
import { environmentOf, type UnitKind } from "./engine_unit.ts";

export function installUnits(into: string): UnitKind {
  return {
    prefix: "heddle-install-",
    slice: "heddle-installs.slice",
    what: "install",
    confinement: (environment) => [
      ...environmentOf(environment),
      "WorkingDirectory=/",
      // Engines' user runs what is installed.
      "UMask=0022",
      "KillMode=mixed",
      "LimitCORE=0",
      "LimitNOFILE=65536",
      "NoNewPrivileges=yes",
      "CapabilityBoundingSet=",
      "ProtectSystem=strict",
      `ReadWritePaths=${into}`,
      "ProtectHome=yes",
      "PrivateTmp=yes",
      "ProtectKernelModules=yes",
      "ProtectControlGroups=yes",
      "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
      "CPUWeight=20",
      "IOWeight=20",
    ],
  };
}
