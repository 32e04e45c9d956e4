/** Puts the parts of installing together as the configuration wants them. */
import { join } from "node:path";
import type { EnginesInUse } from "../core/install/converge.ts";
import { cudaOfDriver } from "../core/install/cuda.ts";
import { installUnits } from "../core/systemd/install_unit.ts";
import { ProcessLauncher } from "../edge/launcher/process.ts";
import { SystemdLauncher } from "../edge/launcher/systemd.ts";
import { ProgramRuns } from "../programs/program_runs.ts";
import { EngineInstalls, INSTALL } from "./engine_installs.ts";
import type { InstallsConfig } from "./installs_config.ts";

export interface OpenInstallsOptions {
  readonly config: InstallsConfig;
  readonly launcher: "process" | "systemd";
  readonly stateDirectory: string;
  readonly shim: string;
  /** Absolute path of heddle-install, where the configuration names none. */
  readonly program: string;
  readonly makeHandle: (name: string) => string;
  readonly now: () => number;
  readonly onChange: () => void;
  /** Driver of this node's GPUs; "" where there is none. */
  readonly driver: () => Promise<string>;
  readonly inUse: () => EnginesInUse;
}

export function openInstalls(options: OpenInstallsOptions): EngineInstalls {
  const { config, shim, stateDirectory, now, onChange, inUse } = options;
  const { folder: into, uv, python, ca_file } = config;
  const folder = join(stateDirectory, "installs");
  const launcher = options.launcher === "systemd"
    ? new SystemdLauncher({
      stateDirectory: folder,
      shim,
      user: config.user,
      kind: installUnits(into),
    })
    : new ProcessLauncher({ stateDirectory: folder, shim });
  const runs = new ProgramRuns({
    language: INSTALL,
    launcher,
    folder,
    program: config.program ?? options.program,
    makeHandle: options.makeHandle,
    settingsOf: () => ({}),
    environmentOf: (_handle, request) => ({
      PATH: "/usr/local/bin:/usr/bin:/bin",
      ...config.env,
      HEDDLE_INSTALL_INTO: into,
      HEDDLE_INSTALL_UV: uv,
      // A folder that stands in for a server is read too.
      HEDDLE_INSTALL_READ: [ca_file, request["releases"]]
        .filter((path) => typeof path === "string" && path.startsWith("/")).join(","),
    }),
  });
  return new EngineInstalls({
    runs,
    folder: into,
    file: join(stateDirectory, "engines.json"),
    now,
    onChange,
    inUse,
    machine: async () => {
      const driver = await options.driver();
      const cuda = cudaOfDriver(driver);
      return { driver, ...(cuda === undefined ? {} : { cuda }) };
    },
    settings: {
      into,
      uv,
      python,
      shim,
      arch: Deno.build.arch,
      ...(ca_file === undefined ? {} : { ca_file }),
    },
  });
}
